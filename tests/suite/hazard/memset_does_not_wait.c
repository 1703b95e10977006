/* cudaMemset clears the bucket: on the device it does not wait for the work, and the stream of the AllReduce does not wait
 * for the default stream.
 * expect: DC303 certain place=here
 * cause: cudaMemset or */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16 };

static void memset_does_not_wait(struct rank *me)
{
    float *bucket;

    CUDA(cudaMalloc((void **)&bucket, COUNT * sizeof *bucket));
    CUDA(cudaMemset(bucket, 0, COUNT * sizeof *bucket));
#ifdef TWIN
    CUDA(cudaDeviceSynchronize());
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));     /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = memset_does_not_wait, .ranks = 2, .layout = THREADS);
