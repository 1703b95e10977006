/* entry.c: finds driver API functions by name in the libcuda.so.1 beside this library. */
#include <cuda.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

#include "emu/core/process.h"
#include "emu/cudart/call.h"

typedef CUresult get_address(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status);

static struct {
    pthread_once_t once;
    get_address *get;
} driver = {.once = PTHREAD_ONCE_INIT};

static void load_driver(void)
{
    char path[PATH_MAX];
    void *library =
        dlopen(emu_process_sibling("libcuda.so.1", path, sizeof(path)), RTLD_NOW | RTLD_LOCAL);

    if (library)
        *(void **)&driver.get = dlsym(library, "cuGetProcAddress_v2");
}

static int entry_point(const char *symbol, void **function, int version, unsigned long long flags,
                       enum cudaDriverEntryPointQueryResult *status)
{
    CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;

    if (!symbol || !function)
        return cudaErrorInvalidValue;
    *function = NULL;
    pthread_once(&driver.once, load_driver);
    if (!driver.get)
        return cudaErrorInitializationError;
    driver.get(symbol, function, version, flags, &answer);
    if (status)
        *status = (enum cudaDriverEntryPointQueryResult)answer;
    /* Without a status to ask, a missing symbol is an error (runtime API, cudaGetDriverEntryPoint).
     */
    return *function || status ? cudaSuccess : cudaErrorSymbolNotFound;
}

#define ENTRY_POINT(suffix, extra_flags)                                                      \
    CALL_ANYTIME(cudaGetDriverEntryPoint##suffix,                                             \
                 (const char *symbol, void **function, unsigned long long flags,              \
                  enum cudaDriverEntryPointQueryResult *status),                              \
                 (symbol, function, flags, status))                                           \
    {                                                                                         \
        return entry_point(symbol, function, DDPCHECK_EMU_CUDART * 1000, flags | extra_flags, \
                           status);                                                           \
    }                                                                                         \
    CALL_ANYTIME(cudaGetDriverEntryPointByVersion##suffix,                                    \
                 (const char *symbol, void **function, unsigned int version,                  \
                  unsigned long long flags, enum cudaDriverEntryPointQueryResult *status),    \
                 (symbol, function, version, flags, status))                                  \
    {                                                                                         \
        return entry_point(symbol, function, (int)version, flags | extra_flags, status);      \
    }

ENTRY_POINT(, 0)
ENTRY_POINT(_ptsz, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
