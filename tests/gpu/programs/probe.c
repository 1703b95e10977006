/* probe.c: says which GPU, driver, runtime and NCCL are here, in one line. Exit 77: there is no
 * GPU; 1: there is one, but the runtime can't use it. */
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

enum { NO_GPU = 77 };

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06 ...": the driver's own number. */
static void read_kernel_module(char text[64])
{
    char line[256], *word;
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    strcpy(text, "unknown");
    if (!file)
        return;
    if (fgets(line, sizeof line, file))
        for (word = strtok(line, " \t\n"); word; word = strtok(NULL, " \t\n"))
            if (strspn(word, "0123456789.") == strlen(word) && strchr(word, '.')) {
                snprintf(text, 64, "%s", word);
                break;
            }
    fclose(file);
}

int main(void)
{
    int driver = 0, runtime = 0, nccl = 0, devices = 0;
    char module[64];
    struct cudaDeviceProp properties;
    cudaError_t error = cudaDriverGetVersion(&driver);
    if (error || !driver) {
        printf("no NVIDIA driver answers here\n");
        return NO_GPU;
    }
    cudaRuntimeGetVersion(&runtime);
    error = cudaGetDeviceCount(&devices);
    if (error == cudaErrorNoDevice || (!error && devices == 0)) {
        printf("no GPU here\n");
        return NO_GPU;
    }
    if (error == cudaErrorInsufficientDriver)
        printf(
            "the driver takes CUDA up to %d.%d, the runtime is %d.%d: install a newer driver, or "
            "build with an older toolkit\n",
            driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    else if (error)
        printf("the GPU can't be used: %s\n", cudaGetErrorString(error));
    if (error)
        return 1;
    if (cudaGetDeviceProperties(&properties, 0) || ncclGetVersion(&nccl)) {
        printf("device 0 does not answer\n");
        return 1;
    }
    read_kernel_module(module);
    printf("%s, compute %d.%d, %zu MiB, %d device%s; driver %s for CUDA %d.%d, runtime %d.%d, NCCL "
           "%d.%d.%d\n",
           properties.name, properties.major, properties.minor, properties.totalGlobalMem >> 20,
           devices, &"s"[devices == 1], module, driver / 1000, driver % 1000 / 10, runtime / 1000,
           runtime % 1000 / 10, nccl / 10000, nccl / 100 % 100, nccl % 100);
    return 0;
}
