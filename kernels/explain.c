/* explain.c: why a GPU can't run these kernels, and how to build ones that it can. */
#include "kernels/kernels.h"

#include <stdio.h>

/* Versions are as CUDA has them: 12080 is 12.8. */
static int major_of(int version)
{
    return version / 1000;
}

static int minor_of(int version)
{
    return version % 1000 / 10;
}

static int explain_old_driver(int driver, char *text, size_t bytes)
{
    int runtime = 0;
    if (cudaRuntimeGetVersion(&runtime) != cudaSuccess)
        return 0;
    return snprintf(text, bytes,
                    "the CUDA runtime is %d.%d and the kernels are built with " KERNELS_TOOLKIT
                    ", but the driver takes CUDA up to %d.%d: install a newer driver, or build "
                    "with a toolkit of CUDA %d (CUDA_HOME says which)",
                    major_of(runtime), minor_of(runtime), major_of(driver), minor_of(driver),
                    major_of(driver));
}

static int explain_no_code(int driver, char *text, size_t bytes)
{
    int device = 0, major = 0, minor = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess)
        return 0;
    return snprintf(text, bytes,
                    "the kernels are built with " KERNELS_TOOLKIT " for " KERNELS_ARCHITECTURES
                    ", and this GPU is %d.%d with a driver for CUDA %d.%d, which compiles no PTX "
                    "of a newer CUDA: build with -DCMAKE_CUDA_ARCHITECTURES=%d%d",
                    major, minor, major_of(driver), minor_of(driver), major, minor);
}

bool kernels_explain(cudaError_t status, char *text, size_t bytes)
{
    int driver = 0, length = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess)
        return false;
    if (driver == 0) /* as the runtime says where it finds no libcuda */
        return snprintf(text, bytes,
                        "no CUDA driver is installed; without a GPU: ddpcheck run --emulate 4 -- "
                        "ddptrain ...") > 0;
    switch (status) {
    case cudaErrorInsufficientDriver:
        length = explain_old_driver(driver, text, bytes);
        break;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorUnsupportedPtxVersion:
        length = explain_no_code(driver, text, bytes);
        break;
    default:
        break;
    }
    return length > 0;
}
