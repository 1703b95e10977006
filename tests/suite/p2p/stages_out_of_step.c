/* A pipeline on one process with all devices: stage 1 waits for the activation of micro-batch 1 before it passes on that of
 * micro-batch 0, stage 0 gives it only after it has the gradient of micro-batch 0, and stage 2 waits for its activation.
 * expect: DC203 certain ranks=0+1 place=pass
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void pass(struct rank *rank, float **x, int from, int to, bool sends)
{
    if (sends)
        NCCL(ncclSend(x[from], COUNT, ncclFloat32, to, rank[from].comm, rank[from].stream));
    else
        NCCL(ncclRecv(x[to], COUNT, ncclFloat32, from, rank[to].comm, rank[to].stream));
}

static void stages_out_of_step(struct rank *rank, int ranks)
{
    float *x[SUITE_RANKS_MAX];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        x[i] = suite_floats(COUNT);
    }
    pass(rank, x, 0, 1, true);      /* stage 0: activation 0, gradient 0, activation 1 */
    pass(rank, x, 1, 0, false);
    pass(rank, x, 0, 1, true);
    pass(rank, x, 0, 1, false);     /* stage 1 */
#ifndef TWIN
    pass(rank, x, 0, 1, false);     /* takes activation 1 too early */
#endif
    pass(rank, x, 1, 2, true);
    pass(rank, x, 1, 0, true);
#ifdef TWIN
    pass(rank, x, 0, 1, false);
#endif
    pass(rank, x, 1, 2, false);     /* stage 2 */
    for (int i = 0; i < ranks; i++)
        CUDA(cudaStreamSynchronize(rank[i].stream));
}

SUITE_CASE(.run_all = stages_out_of_step, .ranks = 3, .layout = ALL);
