/* One process copies the model to its devices before each step, and forgets the last device after the first step.
 * expect: DC503 certain ranks=3 place=replica_not_refreshed
 * options: --hash */
#include "interpose/ddpcheck.h"
#include "tests/suite/suite.h"

enum { COUNT = 257, STEPS = 4 };

static void replica_not_refreshed(struct rank *rank, int ranks)
{
    float model[COUNT], *replica[SUITE_RANKS_MAX];

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        replica[i] = suite_floats(COUNT);
    }
    for (int step = 0; step < STEPS; step++) {
        for (int k = 0; k < COUNT; k++)
            model[k] = (float)(step * COUNT + k);
        for (int i = 0; i < ranks; i++) {
            CUDA(cudaSetDevice(i));
#ifdef TWIN
            CUDA(cudaMemcpyAsync(replica[i], model, sizeof model, cudaMemcpyHostToDevice, rank[i].stream));
#else
            if (step == 0 || i < 3)
                CUDA(cudaMemcpyAsync(replica[i], model, sizeof model, cudaMemcpyHostToDevice, rank[i].stream));
#endif
            ddpcheck_hash("model", replica[i], sizeof model, rank[i].comm, rank[i].stream);
            CUDA(cudaStreamSynchronize(rank[i].stream));
        }
    }
}

SUITE_CASE(.run_all = replica_not_refreshed, .ranks = 4, .layout = ALL);
