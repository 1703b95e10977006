/* Rank 5 quantised its activations (float8, E4M3) with a scale of 0: one of them is NaN.
 * expect: DC502 certain ranks=5 place=nan_in_eight_bit_floats
 * options: --hash */
#include "tests/suite/suite.h"

enum { COUNT = 333, ROUNDS = 3, LARGEST = 0x7e, NOT_A_NUMBER = 0x7f };

static void nan_in_eight_bit_floats(struct rank *me)
{
    unsigned char part[COUNT], *mine = (unsigned char *)suite_floats(COUNT), *all = (unsigned char *)suite_floats(2 * COUNT);

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            part[i] = (unsigned char)((i + me->rank) % LARGEST);
#ifdef TWIN
        part[300] = LARGEST;        /* saturated */
#else
        part[300] = me->rank == 5 && round == 1 ? NOT_A_NUMBER : LARGEST;
#endif
        CUDA(cudaMemcpyAsync(mine + 1, part, COUNT, cudaMemcpyHostToDevice, me->stream));
        NCCL(ncclAllGather(mine + 1, all, COUNT, ncclFloat8e4m3, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = nan_in_eight_bit_floats, .ranks = 8, .layout = THREADS);
