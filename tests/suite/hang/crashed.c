/* Rank 1 follows a null pointer in its data loader; the others wait for its gradients.
 * expect: DC205 certain ranks=1
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

/* The label of the n-th sample; the cache is empty on a rank without samples. */
static int load_label(const int *volatile cache, int n)
{
    return cache[n];
}

static void crashed(struct rank *me)
{
    static const int cache[3] = { 7, 2, 1 };
    float *gradients = suite_floats(COUNT);
    int labels = 0;

    for (int step = 0; step < 3; step++) {
#ifdef TWIN
        labels += load_label(cache, step);
#else
        labels += load_label(step == 1 && me->rank == 1 ? NULL : cache, step);
#endif
        NCCL(ncclAllReduce(gradients, gradients, labels ? COUNT : 1, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = crashed, .ranks = 2, .layout = PROCESSES);
