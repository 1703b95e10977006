/* Rank 1 gives the communicator up and leaves while the others wait in it. They shrink it to those that are left, go on with
 * that, and abort the first one last: the job got over it.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void shrunk_then_aborted(struct rank *me)
{
    float *x = suite_floats(COUNT);
    int excluded[] = {1};
    ncclComm_t rest;
    cudaStream_t stream;

    if (me->rank == 1) {
        suite_await(me, 0);
        NCCL(ncclCommAbort(me->comm));
        me->comm = NULL;
        return;
    }
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    if (me->rank == 0)
        suite_tell(me, 0);
    suite_nap_ms(300); /* meanwhile the others are seen to wait */
    NCCL(ncclCommShrink(me->comm, excluded, 1, &rest, NULL, NCCL_SHRINK_ABORT));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, rest, stream));
    CUDA(cudaStreamSynchronize(stream));
    NCCL(ncclCommAbort(me->comm));
    me->comm = rest;
}

SUITE_CASE(.run = shrunk_then_aborted, .ranks = 3, .layout = PROCESSES);
