/* A kernel out of a module that the program loaded itself, as a just-in-time compiler does, scales the bucket while the
 * AllReduce of it may still run.
 * expect: DC301 certain ranks=0-1 place=scale */
#include <cuda.h>
#include <dlfcn.h>

#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static const char ptx[] = ".version 9.0\n.target sm_90\n.address_size 64\n"
                          ".visible .entry _Z14ddpcheck_scalemfPf() { ret; }\n";

static void *driver(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *address = library ? dlsym(library, name) : NULL;

    if (!address)
        suite_failed(__FILE__, __LINE__, name, "not in libcuda.so.1");
    return address;
}

static void scale(CUfunction kernel, float *bucket, cudaStream_t compute)
{
    __typeof__(&cuLaunchKernel) launch = (__typeof__(&cuLaunchKernel))driver("cuLaunchKernel");
    size_t count = COUNT;
    float factor = 0.5f;
    void *arguments[] = { &count, &factor, &bucket };

    CUDA((cudaError_t)launch(kernel, COUNT / 256, 1, 1, 256, 1, 1, 0, compute, arguments, NULL));
}

static void loaded_kernel_in_flight(struct rank *me)
{
    __typeof__(&cuModuleLoadData) load = (__typeof__(&cuModuleLoadData))driver("cuModuleLoadData");
    __typeof__(&cuModuleGetFunction) find = (__typeof__(&cuModuleGetFunction))driver("cuModuleGetFunction");
    float *bucket = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t reduced;
    CUmodule module;
    CUfunction kernel;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    CUDA((cudaError_t)load(&module, ptx));
    CUDA((cudaError_t)find(&kernel, module, "_Z14ddpcheck_scalemfPf"));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaEventRecord(reduced, me->stream));
#ifdef TWIN
    CUDA(cudaStreamWaitEvent(compute, reduced, 0));
#endif
    scale(kernel, bucket, compute);
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = loaded_kernel_in_flight, .ranks = 2, .layout = PROCESSES);
