/* driver.c: prints what the installed driver is for, as in "13000 90 86": the newest CUDA that it
 * takes and the compute capability of each GPU. Prints nothing where there is no driver. */
#include <dlfcn.h>
#include <stdio.h>

/* Of cuda.h, which need not be here: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR. */
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

int main(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int version = 0, count = 0;
    if (!library)
        return 0;
    int (*get_version)(int *) = (int (*)(int *))dlsym(library, "cuDriverGetVersion");
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*get_count)(int *) = (int (*)(int *))dlsym(library, "cuDeviceGetCount");
    int (*get)(int *, int, int) = (int (*)(int *, int, int))dlsym(library, "cuDeviceGetAttribute");
    if (!get_version || !init || !get_count || !get || get_version(&version) || !version)
        return 0;
    printf("%d", version);
    if (init(0) || get_count(&count))
        count = 0;
    for (int device = 0; device < count; device++) {
        int major = 0, minor = 0;
        if (!get(&major, CAPABILITY_MAJOR, device) && !get(&minor, CAPABILITY_MINOR, device))
            printf(" %d%d", major, minor);
    }
    putchar('\n');
    return 0;
}
