/* Two of four ranks gather shards of parameters (double precision) that were never made: one number in each is NaN.
 * expect: DC502 certain ranks=1-2 place=nan_in_gathered_shards
 * options: --hash */
#include <math.h>

#include "tests/suite/suite.h"

enum { PART = 40 };

static void nan_in_gathered_shards(struct rank *rank, int ranks)
{
    double shard[PART], *part[SUITE_RANKS_MAX], *whole[SUITE_RANKS_MAX];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        part[i] = (double *)suite_floats(2 * PART);
        whole[i] = (double *)suite_floats((size_t)(2 * PART * ranks));
        for (int k = 0; k < PART; k++)
            shard[k] = i + 0.5 * k;
#ifndef TWIN
        if (i == 1 || i == 2)
            shard[PART - i] = NAN;
#endif
        CUDA(cudaMemcpyAsync(part[i], shard, sizeof shard, cudaMemcpyHostToDevice, rank[i].stream));
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++)
        NCCL(ncclAllGather(part[i], whole[i], PART, ncclFloat64, rank[i].comm, rank[i].stream));
    NCCL(ncclGroupEnd());
}

SUITE_CASE(.run_all = nan_in_gathered_shards, .ranks = 4, .layout = ALL);
