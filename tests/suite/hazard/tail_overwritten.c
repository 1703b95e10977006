/* The padding of the bucket is set on another stream; it begins one element too early, inside what is reduced.
 * expect: DC301 certain ranks=1 place=here */
#include "tests/suite/suite.h"

enum { USED = 1000, WHOLE = 1024 };

static void tail_overwritten(struct rank *me)
{
    float *bucket = suite_floats(WHOLE);
    cudaStream_t compute;
#ifdef TWIN
    size_t end = USED;
#else
    size_t end = me->rank == 1 ? USED - 1 : USED;
#endif

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    NCCL(ncclAllReduce(bucket, bucket, USED, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaMemsetAsync(bucket + end, 0, (WHOLE - end) * sizeof *bucket, compute));    /* here */
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = tail_overwritten, .ranks = 4, .layout = THREADS);
