/* dlsym.c: replaces dlsym, so that calls of programs which load NCCL or CUDA by dlopen are
 * recorded.
 *
 * - A name that is not ours: libc's dlsym, by a tail call. It takes its return address for the
 * caller, which matters for RTLD_NEXT and RTLD_DEFAULT; after a tail call that is still the
 * program's. (This file is always compiled with sibling-call optimisation; a test proves the
 * effect.)
 * - RTLD_NEXT: the same for every name. "What comes after the caller" is never us, or us rightly.
 * - RTLD_DEFAULT: finds our wrapper by itself, as we come first; but where no library has the real
 *   function the answer is NULL, so that programs that probe for a function are not misled.
 * - A handle: what libc's dlsym finds there is remembered as the real function, and the wrapper is
 * the answer. If another library's function is known already (two NCCLs in one process), the answer
 * is the real one, unrecorded: a call must reach the library that it was meant for.
 *
 * Functions of the driver are not handed out to CUDA's own libraries (entry_point.h). dlvsym is
 * left alone. */
#include "interpose/calls/dlsym.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "interpose/calls/entry_point.h"
#include "interpose/real/resolve.h"
#include "interpose/shim/shim.h"

/* The wrappers by their symbols, whatever CUDA's headers make of their names; those of the runtimes
 * by their local names. */
#define NCCL_SYMBOL(name, number)   #name
#define DRIVER_SYMBOL(name, number) #name
#define CUDART_SYMBOL(name, number) #name "_cudart" #number

#define CALL_NAME(name, library) \
    extern const char symbol_0_##name[] __asm__(library##_SYMBOL(name, 0));
#include "interpose/calls/call_names.def"

#define NCCL_WRAPPER(name, number)
#define DRIVER_WRAPPER(name, number)
#define CUDART_WRAPPER(name, number) \
    extern const char symbol_##number##_##name[] __asm__(CUDART_SYMBOL(name, number));
#define CALL_NAME(name, library) \
    library##_WRAPPER(name, 11) library##_WRAPPER(name, 12) library##_WRAPPER(name, 13)
#include "interpose/calls/call_names.def"
#undef CUDART_WRAPPER
#define CUDART_WRAPPER(name, number) [CALL_##name] = (void *)(uintptr_t)symbol_##number##_##name,

void *const dlsym_wrappers[RUNTIME_COUNT][CALL_COUNT] = {
    [RUNTIME_DEFAULT] =
        {
#define CALL_NAME(name, library) [CALL_##name] = (void *)(uintptr_t)symbol_0_##name,
#include "interpose/calls/call_names.def"
        },
    [RUNTIME_11] =
        {
#define CALL_NAME(name, library) library##_WRAPPER(name, 11)
#include "interpose/calls/call_names.def"
        },
    [RUNTIME_12] =
        {
#define CALL_NAME(name, library) library##_WRAPPER(name, 12)
#include "interpose/calls/call_names.def"
        },
    [RUNTIME_13] =
        {
#define CALL_NAME(name, library) library##_WRAPPER(name, 13)
#include "interpose/calls/call_names.def"
        },
};

int dlsym_find(const char *name)
{
    if (!name || (strncmp(name, "nccl", 4) && strncmp(name, "cu", 2) && strncmp(name, "__cuda", 6)))
        return -1;
    for (int i = 0; i < CALL_COUNT; i++)
        if (!strcmp(name, resolve_symbols[i].name))
            return i;
    return -1;
}

static void *find_wrapper_or_real(int id, void *handle, const char *name)
{
    void *wrapper = dlsym_wrappers[RUNTIME_DEFAULT][id];
    if (handle == RTLD_DEFAULT)
        return resolve_call(RUNTIME_DEFAULT, (enum call_id)id) ? wrapper : NULL;
    void *real = resolve_dlsym()(handle, name);
    if (!real)
        return NULL;
    if (real == wrapper) /* the program's own handle: dlopen(NULL) */
        return resolve_call(RUNTIME_DEFAULT, (enum call_id)id) ? wrapper : NULL;
    enum library library = resolve_symbols[id].library;
    enum runtime runtime = RUNTIME_DEFAULT;
    if (library == LIBRARY_CUDART)
        runtime = resolve_runtime_behind(handle, name, real);
    void *known = resolve_remember(runtime, (enum call_id)id, real);
    /* A process has one driver, under several addresses. */
    return known == real || library == LIBRARY_DRIVER ? dlsym_wrappers[runtime][id] : real;
}

EXPORT void *dlsym(void *restrict handle, const char *restrict name)
{
    resolve_dlsym_function *real = resolve_dlsym();
    if (!real)
        return NULL;
    int id = handle == RTLD_NEXT ? -1 : dlsym_find(name);
    if (id >= 0 && resolve_symbols[id].library == LIBRARY_DRIVER &&
        entry_point_is_for_cuda(__builtin_return_address(0)))
        id = -1;
    if (id >= 0)
        return find_wrapper_or_real(id, handle, name);
    return real(handle, name);
}
