/* cudaMemcpy3D copies within the device, so the host goes on at once, and the stream of the AllReduce does not wait for the
 * default stream.
 * expect: DC303 certain place=here */
#include "tests/suite/suite.h"

enum { ROW = 256, ROWS = 64, COUNT = ROW * ROWS };

static void volume_copied_without_waiting(struct rank *me)
{
    float *bucket;

    CUDA(cudaMalloc((void **)&bucket, COUNT * sizeof *bucket));
    struct cudaMemcpy3DParms copy = {
        .srcPtr = {suite_floats(COUNT), ROW * sizeof *bucket, ROW, ROWS},
        .dstPtr = {bucket, ROW * sizeof *bucket, ROW, ROWS},
        .extent = {ROW * sizeof *bucket, ROWS, 1},
        .kind = cudaMemcpyDeviceToDevice,
    };
    CUDA(cudaMemcpy3D(&copy));
#ifdef TWIN
    CUDA(cudaDeviceSynchronize());
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));     /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = volume_copied_without_waiting, .ranks = 2, .layout = THREADS);
