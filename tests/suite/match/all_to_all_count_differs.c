/* The experts of rank 0 have another capacity: it exchanges more tokens per peer than the others.
 * expect: DC102 certain ranks=0 place=here
 * ends: hang */
#include "tests/suite/suite.h"

enum { CAPACITY = 64 };

static void all_to_all_count_differs(struct rank *me)
{
    float *tokens = suite_floats(2 * (size_t)CAPACITY * me->ranks), *routed = suite_floats(2 * (size_t)CAPACITY * me->ranks);
#ifdef TWIN
    size_t capacity = CAPACITY;
#else
    size_t capacity = me->rank == 0 ? 2 * CAPACITY : CAPACITY;
#endif

    NCCL(ncclAlltoAll(tokens, routed, capacity, ncclFloat32, me->comm, me->stream));    /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = all_to_all_count_differs, .ranks = 8, .layout = PROCESSES);
