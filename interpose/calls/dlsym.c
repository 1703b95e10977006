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

/* The wrappers by their symbols, whatever CUDA's headers make of their names. */
#define CALL_NAME(name, library) extern const char symbol_##name[] __asm__(#name);
#include "interpose/calls/call_names.def"

void *const dlsym_wrappers[CALL_COUNT] = {
#define CALL_NAME(name, library) [CALL_##name] = (void *)(uintptr_t)symbol_##name,
#include "interpose/calls/call_names.def"
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
    void *wrapper = dlsym_wrappers[id];
    if (handle == RTLD_DEFAULT)
        return resolve_call((enum call_id)id) ? wrapper : NULL;
    void *real = resolve_dlsym()(handle, name);
    if (!real)
        return NULL;
    if (real == wrapper) /* the program's own handle: dlopen(NULL) */
        return resolve_call((enum call_id)id) ? wrapper : NULL;
    if (resolve_symbols[id].library ==
        LIBRARY_DRIVER) { /* a process has one driver, under several addresses */
        resolve_remember((enum call_id)id, real);
        return wrapper;
    }
    return resolve_remember((enum call_id)id, real) == real ? wrapper : real;
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
