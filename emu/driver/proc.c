/* proc.c: cuGetProcAddress: functions by name, in the newest form of the caller's CUDA version. No
 * CUDA header here: the table holds only names and addresses. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "emu/core.h"

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_FOUND = 500, NOT_SUPPORTED = 801 };
enum { FOUND = 0, NO_SYMBOL = 1, VERSION_TOO_OLD = 2 }; /* CUdriverProcAddressQueryResult */
enum { PER_THREAD = 2 }; /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */

int cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status);
int cuGetProcAddress(const char *name, void **address, int version, uint64_t flags);

#define FUNCTION(name, symbol, per_thread, since) void symbol(void);
#include "emu/driver/functions.def"
#undef FUNCTION
#define FUNCTION(name, symbol, per_thread, since) void per_thread(void);
#include "emu/driver/functions.def"
#undef FUNCTION

/* Tables without a documented meaning. NVIDIA's own CUDA runtime queries them, which is linked in
 * by default. */
int cuGetExportTable(const void **table, const void *id);
int cuGetExportTable(const void **table, const void *id)
{
    (void)table, (void)id;
    emu_unsupported("the CUDA runtime inside the program",
                    "it is libcudart_static.a, nvcc's default, and its calls fail with error 36; "
                    "build with nvcc -cudart shared");
    return NOT_SUPPORTED;
}

static const struct function {
    const char *name;
    void (*symbol)(void), (*per_thread)(void);
    int since; /* CUDA version that brought this form */
} functions[] = {
#define FUNCTION(name, symbol, per_thread, since) {#name, symbol, per_thread, since},
#include "emu/driver/functions.def"
#undef FUNCTION
    {"cuGetProcAddress", (void (*)(void))cuGetProcAddress, (void (*)(void))cuGetProcAddress, 11030},
    {"cuGetProcAddress", (void (*)(void))cuGetProcAddress_v2, (void (*)(void))cuGetProcAddress_v2,
     12000},
};

int cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status)
{
    const struct function *best = NULL;
    int known = 0, reason = NO_SYMBOL;

    if (!name || !address)
        return INVALID_VALUE;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (strcmp(functions[i].name, name))
            continue;
        known = 1;
        if (functions[i].since <= version && (!best || functions[i].since > best->since))
            best = &functions[i];
    }
    if (!known && !strcmp(name, "cuGetExportTable"))
        cuGetExportTable(NULL, NULL);
    *address = best ? (void *)(flags & PER_THREAD ? best->per_thread : best->symbol) : NULL;
    if (best)
        reason = FOUND;
    else if (known)
        reason = VERSION_TOO_OLD;
    if (status)
        *status = reason;
    return best ? SUCCESS : NOT_FOUND;
}

int cuGetProcAddress(const char *name, void **address, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, address, version, flags, NULL);
}
