/* Ranks of a ring exchange halos with both neighbours in a group; rank 2 has a wider halo to the right.
 * expect: DC107 certain place=exchange
 * ends: any */
#include "tests/suite/suite.h"

enum { HALO = 128 };

static void exchange(struct rank *me, float *halo, size_t right_count)
{
    int right = (me->rank + 1) % me->ranks, left = (me->rank + me->ranks - 1) % me->ranks;

    NCCL(ncclGroupStart());
    NCCL(ncclSend(halo, right_count, ncclFloat32, right, me->comm, me->stream));
    NCCL(ncclRecv(halo + 2 * HALO, HALO, ncclFloat32, left, me->comm, me->stream));
    NCCL(ncclSend(halo + 4 * HALO, HALO, ncclFloat32, left, me->comm, me->stream));
    NCCL(ncclRecv(halo + 6 * HALO, HALO, ncclFloat32, right, me->comm, me->stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

static void halo_of_other_width(struct rank *me)
{
    float *halo = suite_floats(8 * HALO);

#ifdef TWIN
    exchange(me, halo, HALO);
#else
    exchange(me, halo, me->rank == 2 ? 2 * HALO : HALO);
#endif
}

SUITE_CASE(.run = halo_of_other_width, .ranks = 4, .layout = PROCESSES);
