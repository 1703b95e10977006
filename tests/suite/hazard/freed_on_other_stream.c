/* The bucket of an AllReduce is given back to the pool on the compute stream, which does not wait for it.
 * expect: DC306 certain ranks=0-1 place=here
 * cause: record_stream is missing
 * ends: any
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void freed_on_other_stream(struct rank *me)
{
    cudaStream_t compute;
    float *bucket;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaMallocAsync((void **)&bucket, COUNT * sizeof *bucket, me->stream));
    CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, me->stream));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifdef TWIN
    CUDA(cudaFreeAsync(bucket, me->stream));
#else
    CUDA(cudaFreeAsync(bucket, compute));       /* here */
#endif
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = freed_on_other_stream, .ranks = 2, .layout = PROCESSES);
