/* callers.c: finds the NCCL that a caller is linked with. */
#include "interpose/real/callers.h"

#include <dlfcn.h>

#include "interpose/shim/shim.h"

struct callers callers;

static void *base_of(const void *address)
{
    Dl_info info;
    return address && dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* What the loader finds for the caller's library; NULL if that is not linked with an NCCL, or is
 * the program itself, which finds the shim first. A library that has the function itself may only
 * have stubs, which load NCCL and call it by the same name. */
static void *find_beside(enum call_id id, const void *site)
{
    Dl_info info;
    if (!resolve_dlsym() || !dladdr(site, &info) || !info.dli_fname || !*info.dli_fname)
        return NULL;
    void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void *real = library ? resolve_dlsym()(library, resolve_symbols[id].name) : NULL;
    if (library)
        dlclose(library);
    if (!real)
        dlerror(); /* the program's next dlerror is not to return ours */
    void *base = base_of(real);
    return base == base_of(&callers) || base == info.dli_fbase ? NULL : real;
}

/* The bit of a function that is not of the NCCL that is recorded, which is the first. */
static uint64_t other_bit(const void *found, const void *recorded)
{
    if (!found || found == recorded)
        return 0;
    if (atomic_load(&shim.state) != SHIM_OFF)
        problem_print(PROBLEM_SECOND_NCCL,
                      "a second NCCL is loaded in this process: its calls are not recorded");
    return CALLERS_OTHER;
}

/* NULL: the table is full around the key. */
static struct caller *claim_caller(uint64_t key)
{
    for (unsigned i = 0; i < CALLERS_PROBES; i++) {
        struct caller *caller = callers_slot(key, i);
        uint64_t found = 0;
        if (atomic_compare_exchange_strong(&caller->key, &found, key) || found == key)
            return caller;
    }
    return NULL;
}

uint64_t callers_find_slow(enum call_id id, const void *site)
{
    struct caller *caller = claim_caller(callers_key(id, site));
    uint64_t known = caller ? atomic_load_explicit(&caller->real, memory_order_relaxed) : 0;
    if (known)
        return known;
    void *found = find_beside(id, site), *recorded = resolve_call(RUNTIME_DEFAULT, id);
    uint64_t real = (uintptr_t)(found ? found : recorded);
    if (!real)
        return 0;
    real |= other_bit(found, recorded);
    if (caller)
        atomic_store_explicit(&caller->real, real, memory_order_relaxed);
    return real;
}
