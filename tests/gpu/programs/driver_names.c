/* driver_names.c NAME...: which functions cuGetProcAddress finds for the names, in each of several
 * CUDA versions: a line each with the symbols that the address has. Under the shim some are its
 * wrappers, which must be one of the same symbols. The last line is how many. Then the thread's
 * context is waited for, as a runtime of each version does. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cuda.h>

typedef CUresult find_function(const char *name, void **address, int version, cuuint64_t flags,
                               CUdriverProcAddressQueryResult *status);

static void *library;
static find_function *find;

static void *find_named(const char *name, int version, cuuint64_t flags)
{
    void *address = NULL;
    CUdriverProcAddressQueryResult status;
    return find(name, &address, version, flags, &status) == CUDA_SUCCESS ? address : NULL;
}

/* All symbols that have the address, of the forms that a function can have. */
static int print_symbols(const char *name, int version, cuuint64_t flags)
{
    static const char *const forms[] = {"",      "_v2",      "_v3",      "_ptsz",
                                        "_ptds", "_v2_ptsz", "_v2_ptds", "_v3_ptsz"};
    Dl_info info;
    void *address = find_named(name, version, flags);
    printf("%s %d %d", name, version, (int)flags);
    for (size_t i = 0; address && i < sizeof forms / sizeof *forms; i++) {
        char symbol[128];
        snprintf(symbol, sizeof symbol, "%s%s", name, forms[i]);
        if (dlsym(library, symbol) == address)
            printf(" %s", symbol);
    }
    printf("\n");
    return address && dladdr(address, &info) && strstr(info.dli_fname, "libddpcheck") != NULL;
}

static bool wait_as_runtime(CUcontext context, int driver)
{
    CUresult (*wait_for_own)(void) = (CUresult(*)(void))find_named("cuCtxSynchronize", 12000, 0);
    CUresult (*wait_for)(CUcontext) =
        (CUresult(*)(CUcontext))find_named("cuCtxSynchronize", 13000, 0);
    return wait_for_own && wait_for_own() == CUDA_SUCCESS &&
           (driver < 13000 ||
            (wait_for && wait_for(context) == CUDA_SUCCESS && wait_for(NULL) == CUDA_SUCCESS));
}

int main(int count, char **names)
{
    static const int versions[] = {11000, 12000, 12080, 13000};
    int wrapped = 0, driver = 0;
    CUcontext context;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library || !(find = (find_function *)dlsym(library, "cuGetProcAddress_v2"))) {
        fprintf(stderr, "no driver: %s\n", dlerror());
        return 1;
    }
#define CALL(name) ((__typeof__(&name))dlsym(library, #name))
    CUresult (*retain)(CUcontext *, CUdevice) = CALL(cuDevicePrimaryCtxRetain);
    if (CALL(cuInit)(0) || CALL(cuDriverGetVersion)(&driver) || retain(&context, 0) ||
        CALL(cuCtxSetCurrent)(context)) {
        fprintf(stderr, "device 0 does not answer\n");
        return 1;
    }
    for (int i = 1; i < count; i++)
        for (size_t version = 0; version < sizeof versions / sizeof *versions; version++)
            for (cuuint64_t flags = 0; flags <= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
                 flags += 2)
                wrapped += print_symbols(names[i], versions[version], flags);
    if (!wait_as_runtime(context, driver)) {
        fprintf(stderr, "the context can't be waited for\n");
        return 1;
    }
    printf("wrapped %d\n", wrapped);
    return 0;
}
