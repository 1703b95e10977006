/* The program uses the CUDA driver, found by name as frameworks find it, and clears its bucket with cuMemsetD32Async while
 * the AllReduce of it may still run.
 * expect: DC301 certain ranks=1 place=clear */
#include <cuda.h>
#include <dlfcn.h>

#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

typedef CUresult memset_function(CUdeviceptr, unsigned int, size_t, CUstream);
typedef CUresult wait_function(CUstream, CUevent, unsigned int);

static void *driver(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *address = library ? dlsym(library, name) : NULL;

    if (!address)
        suite_failed(__FILE__, __LINE__, name, "not in libcuda.so.1");
    return address;
}

static void clear(memset_function *set, float *bucket, cudaStream_t compute)
{
    CUDA((cudaError_t)set((CUdeviceptr)bucket, 0, COUNT, compute));
}

static void driver_memset_in_flight(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    memset_function *set = (memset_function *)driver("cuMemsetD32Async");
    wait_function *wait = (wait_function *)driver("cuStreamWaitEvent");
    cudaStream_t compute;
    cudaEvent_t reduced;
#ifdef TWIN
    bool waits = true;
#else
    bool waits = me->rank != 1;
#endif

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaEventRecord(reduced, me->stream));
    if (waits)
        CUDA((cudaError_t)wait(compute, reduced, 0));
    clear(set, bucket, compute);
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = driver_memset_in_flight, .ranks = 3, .layout = PROCESSES);
