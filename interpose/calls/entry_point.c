/* entry_point.c: wraps cuGetProcAddress, which finds the driver's functions by name: it returns our
 * wrapper where there is one of the same form.
 *
 * The form of a function changes with the requested CUDA version: cuMemAlloc of CUDA 3.1 takes
 * other sizes than that of 3.2, cuCtxSynchronize of CUDA 13 takes a context. Each form is a symbol
 * of its own in the driver; the one that was found is ours if our wrapper's symbol has its address.
 */
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

/* Of another copy of the driver: WSL's libcuda.so.1 hands out functions of a library behind it. */
static bool has_symbol(const void *address, const char *symbol)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_saddr == address && !strcmp(info.dli_sname, symbol);
}

/* The wrapper of the function that the driver found for the name, or -1. "cuMemAlloc" finds
 * "cuMemAlloc_v2"; per_thread looks for the form with _ptsz or _ptds first. */
static int find_wrapper(const char *name, const void *real, bool per_thread)
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
        if (id >= 0 && resolve_symbols[id].library == LIBRARY_DRIVER &&
            (resolve_call(RUNTIME_DEFAULT, (enum call_id)id) == real || has_symbol(real, symbol)))
            return id;
    }
    return -1;
}

void *entry_point_replace(const char *name, void *real, uint64_t flags, const void *caller)
{
    if (!name || !real || entry_point_is_for_cuda(caller))
        return real;
    int id = find_wrapper(name, real, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    if (id < 0)
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
