/* The second layer was added to the model after the reducer was made: its gradient is not reduced on any rank.
 * expect: DC503 certain ranks=0+1 place=gradient_not_reduced
 * options: --hash */
#include "interpose/ddpcheck.h"
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { LAYERS = 2, COUNT = 321, STEPS = 3 };

static void gradient_not_reduced(struct rank *me)
{
    float *weights[LAYERS], *gradients[LAYERS], *momentum = suite_floats(COUNT);
    const char *names[LAYERS] = { "layer 1", "layer 2" };
#ifdef TWIN
    int reduced = LAYERS;
#else
    int reduced = 1;
#endif

    for (int layer = 0; layer < LAYERS; layer++) {
        weights[layer] = suite_floats(COUNT);
        gradients[layer] = suite_floats(COUNT);
    }
    for (int step = 0; step < STEPS; step++)
        for (int layer = 0; layer < LAYERS; layer++) {
            CUDA(kernels_fill(COUNT, (float)(me->rank + step), gradients[layer], me->stream));
            if (layer < reduced)
                NCCL(ncclAllReduce(gradients[layer], gradients[layer], COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
            CUDA(kernels_sgd_step(COUNT, weights[layer], gradients[layer], momentum, 0.1f, 0, me->stream));
            ddpcheck_hash(names[layer], weights[layer], COUNT * sizeof(float), NULL, me->stream);
        }
}

SUITE_CASE(.run = gradient_not_reduced, .ranks = 2, .layout = PROCESSES);
