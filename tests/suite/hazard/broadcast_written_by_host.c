/* Rank 2's host counts in the parameters that are being broadcast to it (managed memory), round after
 * round: whether a write comes between a Broadcast and its hash is chance.
 * expect: DC308 certain ranks=2 place=broadcast_written_by_host
 * options: --hash */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 19, ROUNDS = 24 };

static void broadcast_written_by_host(struct rank *me)
{
    int *parameters;
    unsigned at = 0;

    CUDA(cudaMallocManaged((void **)&parameters, COUNT * sizeof *parameters, cudaMemAttachGlobal));
    CUDA(cudaMemset(parameters, me->rank, COUNT * sizeof *parameters));
    CUDA(cudaDeviceSynchronize());
    for (int round = 0; round < ROUNDS; round++) {
        NCCL(ncclBroadcast(parameters, parameters, COUNT, ncclInt32, 0, me->comm, me->stream));
#ifdef TWIN
        CUDA(cudaStreamSynchronize(me->stream));
#endif
        do
            for (int i = 0; me->rank == 2 && i < 1000; i++)
                parameters[at++ * 997 % COUNT] += 1 + i;
        while (cudaStreamQuery(me->stream) == cudaErrorNotReady);
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = broadcast_written_by_host, .ranks = 4, .layout = THREADS);
