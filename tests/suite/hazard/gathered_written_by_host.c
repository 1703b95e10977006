/* One process, three devices: the host goes on in device 0's gathered parameters when it sees the last of them,
 * before the stream is done. It sleeps while it looks, so that a busy machine wakes it while they are hashed.
 * expect: DC308 certain ranks=0 place=gathered_written_by_host
 * options: --hash */
#include "tests/suite/suite.h"

enum { RANKS = 3, PART = 1 << 21, COUNT = RANKS * PART, ROUNDS = 12 };

static void gathered_written_by_host(struct rank *rank, int ranks)
{
    float *part[RANKS], *whole[RANKS];
    volatile float *seen;

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        part[i] = suite_floats(PART);
        CUDA(cudaMemset(part[i], 1, PART * sizeof(float)));
        CUDA(cudaMallocManaged((void **)&whole[i], COUNT * sizeof(float), cudaMemAttachGlobal));
        CUDA(cudaMemset(whole[i], 0, COUNT * sizeof(float)));
        CUDA(cudaDeviceSynchronize());
    }
    seen = whole[0];
    for (int round = 0; round < ROUNDS; round++) {
        NCCL(ncclGroupStart());
        for (int i = 0; i < ranks; i++)
            NCCL(ncclAllGather(part[i], whole[i], PART, ncclFloat32, rank[i].comm, rank[i].stream));
        NCCL(ncclGroupEnd());
#ifdef TWIN
        CUDA(cudaStreamSynchronize(rank[0].stream));
#endif
        while (seen[COUNT - 1] == 0)
            suite_nap_ms(1);
        for (int i = COUNT; i-- > 0;)
            seen[i] = 0;
    }
    CUDA(cudaStreamSynchronize(rank[0].stream));
}

SUITE_CASE(.run_all = gathered_written_by_host, .ranks = 3, .layout = ALL);
