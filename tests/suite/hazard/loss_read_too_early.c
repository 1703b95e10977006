/* The reduced loss is copied to the host on another stream than its AllReduce, without waiting for it.
 * expect: DC302 certain ranks=0-3 place=here
 * minimal: yes */
#include "tests/suite/suite.h"

static void loss_read_too_early(struct rank *me)
{
    float *loss = suite_floats(1), *host;
    cudaStream_t copies;

    CUDA(cudaMallocHost((void **)&host, sizeof *host));
    CUDA(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclSum, me->comm, me->stream));
#ifdef TWIN
    CUDA(cudaStreamSynchronize(me->stream));
#endif
    CUDA(cudaMemcpyAsync(host, loss, sizeof *host, cudaMemcpyDeviceToHost, copies));    /* here */
    CUDA(cudaStreamSynchronize(copies));
}

SUITE_CASE(.run = loss_read_too_early, .ranks = 4, .layout = PROCESSES);
