/* A write on the default stream is believed to wait for the AllReduce; but that runs on a stream made with
 * cudaStreamNonBlocking.
 * expect: DC301 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16 };

static void default_stream_does_not_wait(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaStream_t communication;

#ifdef TWIN
    CUDA(cudaStreamCreate(&communication));
#else
    CUDA(cudaStreamCreateWithFlags(&communication, cudaStreamNonBlocking));
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, communication));
    CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, NULL));     /* here */
    CUDA(cudaStreamSynchronize(NULL));
    CUDA(cudaStreamSynchronize(communication));
    suite_meet(me, 0);
}

SUITE_CASE(.run = default_stream_does_not_wait, .ranks = 2, .layout = PROCESSES);
