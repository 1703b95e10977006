/* entry_point.c: wraps cuGetProcAddress, which finds the driver's functions by name: it returns our
 * wrapper where there is one of the same form.
 *
 * The form of a function changes with the requested CUDA version (cuMemAlloc of CUDA 3.1
 * takes other sizes than that of 3.2). Whether the one that was found is ours the driver
 * itself shows: it is, if the version of our headers gives the same address. */
#include "interpose/calls/entry_point.h"

#include <dlfcn.h>
#include <string.h>

#include <cuda.h>

#include "interpose/calls/dlsym.h"
#include "interpose/real/resolve.h"
#include "interpose/shim/shim.h"

/* cuda.h calls the second form by the first one's name. */
typedef CUresult find_function(const char *name, void **address, int version, cuuint64_t flags,
                               CUdriverProcAddressQueryResult *status);
typedef CUresult find_old_function(const char *name, void **address, int version, cuuint64_t flags);
EXPORT find_function entry_point_find __asm__("cuGetProcAddress_v2");
EXPORT find_old_function entry_point_find_old __asm__("cuGetProcAddress");

/* The libraries that are CUDA: they need what they request for the work of calls that were recorded
 * already, or for work of their own that does not belong to the program. */
bool entry_point_is_for_cuda(const void *caller)
{
    static const char *const libraries[] = {"libcuda.so",      "libcudart.so", "libnccl.so",
                                            "libnccl-",        "libcupti.so",  "libnvidia-",
                                            "libcudadebugger", "libddpcheck"};
    Dl_info info;
    if (!dladdr(caller, &info) || !info.dli_fname)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *name = slash ? slash + 1 : info.dli_fname;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (!strncmp(name, libraries[i], strlen(libraries[i])))
            return true;
    return false;
}

/* "cuMemAlloc" finds "cuMemAlloc_v2"; per_thread looks for the form with _ptsz or _ptds first. */
static int find_wrapper(const char *name, bool per_thread)
{
    static const char *const forms[] = {"_v2_ptsz", "_ptsz", "_v2_ptds", "_ptds", "_v2", ""};
    enum { PLAIN = 4, FORMS = sizeof forms / sizeof *forms };
    size_t length = strlen(name);
    char symbol[96];
    if (length > sizeof symbol - sizeof "_v2_ptsz")
        return -1;
    memcpy(symbol, name, length);
    for (int i = per_thread ? 0 : PLAIN; i < FORMS; i++) {
        strcpy(symbol + length, forms[i]);
        int id = dlsym_find(symbol);
        if (id >= 0 && resolve_symbols[id].library == LIBRARY_DRIVER)
            return id;
    }
    return -1;
}

static void *real_of_our_version(const char *name, cuuint64_t flags)
{
    find_function *find = (find_function *)resolve_call(RUNTIME_DEFAULT, CALL_cuGetProcAddress_v2);
    __typeof__(&cuDriverGetVersion) get_version = REAL_HELPER(cuDriverGetVersion);
    void *address = NULL;
    int version = CUDA_VERSION, newest;
    if (get_version && get_version(&newest) == CUDA_SUCCESS && newest < version)
        version = newest;
    return find && find(name, &address, version, flags, NULL) == CUDA_SUCCESS ? address : NULL;
}

void *entry_point_replace(const char *name, void *real, uint64_t flags, const void *caller)
{
    bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    int id = name && real ? find_wrapper(name, per_thread) : -1;
    if (id < 0 || entry_point_is_for_cuda(caller) || real_of_our_version(name, flags) != real)
        return real;
    resolve_remember(RUNTIME_DEFAULT, (enum call_id)id, real);
    return dlsym_wrappers[RUNTIME_DEFAULT][id];
}

static CUresult missing_in_driver(enum call_id id)
{
    resolve_print_missing(id);
    return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
}

CUresult entry_point_find(const char *name, void **address, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status)
{
    find_function *real = (find_function *)resolve_call(RUNTIME_DEFAULT, CALL_cuGetProcAddress_v2);
    CUresult result = real ? real(name, address, version, flags, status)
                           : missing_in_driver(CALL_cuGetProcAddress_v2);
    if (result == CUDA_SUCCESS && address)
        *address = entry_point_replace(name, *address, flags, __builtin_return_address(0));
    return result;
}

CUresult entry_point_find_old(const char *name, void **address, int version, cuuint64_t flags)
{
    find_old_function *real =
        (find_old_function *)resolve_call(RUNTIME_DEFAULT, CALL_cuGetProcAddress);
    CUresult result = real ? real(name, address, version, flags)
                           : missing_in_driver(CALL_cuGetProcAddress);
    if (result == CUDA_SUCCESS && address)
        *address = entry_point_replace(name, *address, flags, __builtin_return_address(0));
    return result;
}
