/* cudaMemset2D clears the rows of a bucket: on the device it does not wait for the work, and the stream of the AllReduce does not
 * wait for the default stream.
 * expect: DC303 certain place=here */
#include "tests/suite/suite.h"

enum { ROW = 256, ROWS = 64, COUNT = ROW * ROWS };

static void rows_cleared_without_waiting(struct rank *me)
{
    float *bucket;

    CUDA(cudaMalloc((void **)&bucket, COUNT * sizeof *bucket));
    CUDA(cudaMemset2D(bucket, ROW * sizeof *bucket, 0, ROW * sizeof *bucket, ROWS));
#ifdef TWIN
    CUDA(cudaDeviceSynchronize());
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));     /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = rows_cleared_without_waiting, .ranks = 2, .layout = THREADS);
