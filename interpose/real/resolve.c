/* resolve.c: finds the real functions of NCCL and CUDA in the loaded libraries. */
#include "interpose/real/resolve.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include <cuda_runtime_api.h>

#include "interpose/real/gpu.h"
#include "interpose/real/libc.h"
#include "interpose/real/library_name.h"
#include "interpose/shim/shim.h"

struct resolved resolved;

const struct resolve_symbol resolve_symbols[CALL_COUNT] = {
#define CALL_NAME(name, library) [CALL_##name] = {#name, LIBRARY_##library},
#include "interpose/calls/call_names.def"
};

/* Of the default one the text is only the linker's. */
static const char *const runtime_versions[RUNTIME_COUNT] = {
#define RUNTIME(number, version) version,
    RUNTIMES
#undef RUNTIME
};

static const struct resolve_symbol helpers[HELPER_COUNT] = {
#define HELPER(name, library, symbol) {symbol, LIBRARY_##library},
    HELPERS
#undef HELPER
};

resolve_dlsym_function *resolve_dlsym(void)
{
    void *real = atomic_load_explicit(&resolved.dlsym, memory_order_relaxed);
    if (real)
        return (resolve_dlsym_function *)real;
    /* dlsym moved into libc in 2.34; before, and for programs built then, it has the architecture's
     * first version. */
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions && !real; i++)
        real = libc_is_glibc() ? dlvsym(RTLD_NEXT, "dlsym", versions[i]) : libc_find("dlsym");
    atomic_store_explicit(&resolved.dlsym, real, memory_order_relaxed);
    return (resolve_dlsym_function *)real;
}

/* The address is in this library: a wrapper, not the real function. */
static bool is_wrapper(const void *address)
{
    Dl_info found, ours;
    return address && dladdr(address, &found) && dladdr(&resolved, &ours) &&
           found.dli_fbase == ours.dli_fbase;
}

/* A library that is loaded already, by its usual names. The handle is kept, so that the library
 * stays while its functions may be called. */
static void *find_by_name(enum library library, const char *symbol)
{
    static const char *const names[][4] = {
        [LIBRARY_NCCL] = {"libnccl.so.2", "libnccl.so", "librccl.so.1"},
        [LIBRARY_CUDART] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"},
        [LIBRARY_DRIVER] = {"libcuda.so.1", "libcuda.so"},
    };
    for (size_t i = 0; i < 4 && names[library][i]; i++) {
        void *handle = dlopen(names[library][i], RTLD_LAZY | RTLD_NOLOAD);
        void *address = handle ? resolve_dlsym()(handle, symbol) : NULL;
        if (address)
            return address;
    }
    return NULL;
}

struct name_list {
    char *text;
    size_t used, bytes;
    unsigned long long loads;
};

static int list_name(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    struct name_list *list = argument;
    list->loads = info->dlpi_adds;
    size_t bytes = library_name_bytes(info);
    if (bytes && list->text && bytes < list->bytes - list->used) {
        memcpy(list->text + list->used, info->dlpi_name, bytes);
        list->used += bytes + 1; /* the list is zeroed */
    }
    return 0;
}

/* Any library that is loaded: NCCL may be linked into another one and exported from there. Slow,
 * and only after everything else failed. The names are copied first, because dlopen must not be
 * called while the list of libraries is locked. */
static void *find_anywhere(const char *symbol, const char *version)
{
    struct name_list list = {.bytes = 1 << 20};
    dl_iterate_phdr(list_name, &list);
    if (!version && list.loads == atomic_load(&resolved.searched_loads))
        return NULL;
    list.text = mmap(NULL, list.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (list.text == MAP_FAILED)
        return NULL;
    dl_iterate_phdr(list_name, &list);
    void *address = NULL;
    for (size_t at = 0; at < list.used && !address; at += strlen(list.text + at) + 1) {
        void *handle = dlopen(list.text + at, RTLD_LAZY | RTLD_NOLOAD);
        if (!handle)
            continue;
        address = version ? dlvsym(handle, symbol, version) : resolve_dlsym()(handle, symbol);
        if (is_wrapper(address))
            address = NULL;
        if (!address)
            dlclose(handle);
    }
    munmap(list.text, list.bytes);
    if (!address && !version)
        atomic_store(&resolved.searched_loads, list.loads);
    return address;
}

/* The function of one runtime of several, by the version of its symbols. */
static void *find_in_runtime(enum runtime runtime, const char *symbol)
{
    const char *version = runtime_versions[runtime];
    void *address = dlvsym(RTLD_NEXT, symbol, version);
    void *handle = address ? NULL : dlopen(version, RTLD_LAZY | RTLD_NOLOAD);
    if (handle)
        address = dlvsym(handle, symbol, version);
    return address ? address : find_anywhere(symbol, version);
}

static void *find_real(enum runtime runtime, enum library library, const char *symbol)
{
    if (!resolve_dlsym())
        return NULL;
    void *address = runtime == RUNTIME_DEFAULT ? NULL : find_in_runtime(runtime, symbol);
    if (!address)
        address = resolve_dlsym()(RTLD_NEXT, symbol);
    if (!address)
        address = find_by_name(library, symbol);
    return is_wrapper(address) ? NULL : address;
}

enum runtime resolve_runtime_behind(void *handle, const char *name, const void *address)
{
    enum runtime found = RUNTIME_DEFAULT;
    for (int i = RUNTIME_DEFAULT + 1; i < RUNTIME_COUNT && found == RUNTIME_DEFAULT; i++)
        if (dlvsym(handle, name, runtime_versions[i]) == address)
            found = (enum runtime)i;
    dlerror(); /* the program's own dlsym succeeded */
    return found;
}

void *resolve_call_slow(enum runtime runtime, enum call_id id)
{
    const struct resolve_symbol *symbol = &resolve_symbols[id];
    void *address = find_real(runtime, symbol->library, symbol->name);
    if (!address && resolve_dlsym() && symbol->library != LIBRARY_DRIVER)
        address = find_anywhere(symbol->name, NULL);
    if (address)
        address = resolve_remember(runtime, id, address);
    return address;
}

/* The driver may be loaded in a way that only the runtime knows; the runtime is queried last. */
static void *query_runtime(const char *name)
{
    __typeof__(&cudaGetDriverEntryPointByVersion) entry_point =
        REAL_HELPER(cudaGetDriverEntryPointByVersion);
    void *address = NULL;
    enum cudaDriverEntryPointQueryResult answer;
    if (!entry_point || thread_self.in_callback)
        return NULL;
    bool clean = gpu_may_query();
    if (entry_point(name, &address, 12000, cudaEnableLegacyStream, &answer) != cudaSuccess) {
        if (clean)
            gpu_forget_error();
        return NULL;
    }
    return answer == cudaDriverEntryPointSuccess ? address : NULL;
}

void *resolve_helper_slow(enum runtime runtime, enum helper helper)
{
    /* Each failed search changes what the program's own dlerror() returns, so their number is
     * limited. */
    enum { TRIES = 64 };
    if (atomic_load_explicit(&resolved.helper_failures[runtime][helper], memory_order_relaxed) >=
        TRIES)
        return NULL;
    void *address = find_real(runtime, helpers[helper].library, helpers[helper].name);
    if (!address && helpers[helper].library == LIBRARY_DRIVER) {
        char base[64];
        size_t length = strlen(helpers[helper].name);
        memcpy(base, helpers[helper].name, length + 1);
        if (length > 3 && !strcmp(base + length - 3, "_v2"))
            base[length - 3] = 0; /* the runtime adds the version itself */
        address = query_runtime(base);
    }
    if (address)
        atomic_store_explicit(&resolved.helper[runtime][helper], address, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&resolved.helper_failures[runtime][helper], 1,
                                  memory_order_relaxed);
    return address;
}

void *resolve_remember(enum runtime runtime, enum call_id id, void *address)
{
    void *known = NULL;
    if (!atomic_compare_exchange_strong(&resolved.call[runtime][id], &known, address))
        return known;
    /* The library must stay loaded while its functions may be called. */
    Dl_info info;
    if (dladdr(address, &info) && info.dli_fname && *info.dli_fname)
        dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return address;
}

void resolve_print_missing(enum call_id id)
{
    problem_print(PROBLEM_MISSING_FUNCTION,
                  "missing real function: no loaded library has %s; the call fails",
                  resolve_symbols[id].name);
}
