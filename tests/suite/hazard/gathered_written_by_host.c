/* One process, three devices: the host goes on in device 0's gathered parameters before the AllGather is done,
 * round after round: whether a write comes between an AllGather and its hash is chance.
 * expect: DC308 certain ranks=0 place=gathered_written_by_host
 * options: --hash */
#include "tests/suite/suite.h"

enum { RANKS = 3, PART = 1 << 18, COUNT = RANKS * PART, ROUNDS = 24 };

static void gathered_written_by_host(struct rank *rank, int ranks)
{
    float *part[RANKS], *whole[RANKS];
    unsigned at = 0;

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        part[i] = suite_floats(PART);
        CUDA(cudaMallocManaged((void **)&whole[i], COUNT * sizeof(float), cudaMemAttachGlobal));
        CUDA(cudaMemset(whole[i], 0, COUNT * sizeof(float)));
        CUDA(cudaDeviceSynchronize());
    }
    for (int round = 0; round < ROUNDS; round++) {
        NCCL(ncclGroupStart());
        for (int i = 0; i < ranks; i++)
            NCCL(ncclAllGather(part[i], whole[i], PART, ncclFloat32, rank[i].comm, rank[i].stream));
        NCCL(ncclGroupEnd());
#ifdef TWIN
        CUDA(cudaStreamSynchronize(rank[0].stream));
#endif
        do
            for (int i = 0; i < 1000; i++)
                whole[0][at++ * 997 % COUNT] = (float)(round + i);
        while (cudaStreamQuery(rank[0].stream) == cudaErrorNotReady);
    }
}

SUITE_CASE(.run_all = gathered_written_by_host, .ranks = 3, .layout = ALL);
