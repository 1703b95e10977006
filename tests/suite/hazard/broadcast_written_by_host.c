/* Rank 2's host clears the parameters that are being broadcast to it (managed memory) when it sees the last of
 * them, before the stream is done. It sleeps while it looks, so that a busy machine wakes it while they are hashed.
 * expect: DC308 certain ranks=2 place=broadcast_written_by_host
 * options: --hash */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 22, ROUNDS = 12 };

static void broadcast_written_by_host(struct rank *me)
{
    int *parameters;
    volatile int *seen;

    CUDA(cudaMallocManaged((void **)&parameters, COUNT * sizeof *parameters, cudaMemAttachGlobal));
    CUDA(cudaMemset(parameters, me->rank == 0, COUNT * sizeof *parameters));
    CUDA(cudaDeviceSynchronize());
    seen = parameters;
    for (int round = 0; round < ROUNDS; round++) {
        NCCL(ncclBroadcast(parameters, parameters, COUNT, ncclInt32, 0, me->comm, me->stream));
#ifdef TWIN
        CUDA(cudaStreamSynchronize(me->stream));
#endif
        while (me->rank == 2 && seen[COUNT - 1] == 0)
            suite_nap_ms(1);
        for (int i = COUNT; me->rank == 2 && i-- > 0;)
            seen[i] = 0;
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = broadcast_written_by_host, .ranks = 4, .layout = THREADS);
