/* Rank 1 copies a new input from the host into the buffer that an ncclRecv on another stream is writing.
 * expect: DC301 certain ranks=1 place=load_input */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12 };

static void load_input(float *buffer, const float *host, cudaStream_t copies)
{
    CUDA(cudaMemcpyAsync(buffer, host, COUNT * sizeof *buffer, cudaMemcpyHostToDevice, copies));
    CUDA(cudaStreamSynchronize(copies));
}

static void input_over_received(struct rank *me)
{
    float *buffer = suite_floats(COUNT), *input = suite_floats(COUNT), *host;
    cudaStream_t copies;

    CUDA(cudaMallocHost((void **)&host, COUNT * sizeof *host));
    CUDA(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    if (me->rank == 0)
        NCCL(ncclSend(buffer, COUNT, ncclFloat32, 1, me->comm, me->stream));
    else
        NCCL(ncclRecv(buffer, COUNT, ncclFloat32, 0, me->comm, me->stream));
    if (me->rank == 1)
#ifdef TWIN
        load_input(input, host, copies);
#else
        load_input(buffer, host, copies);
#endif
    CUDA(cudaMemcpyAsync(buffer, input, COUNT * sizeof *buffer, cudaMemcpyDeviceToDevice, me->stream));
}

SUITE_CASE(.run = input_over_received, .ranks = 2, .layout = PROCESSES);
