/* The generator's backward goes through the discriminator after the discriminator's optimizer has stepped: the weights
 * that forward had saved are no longer those. Only rank 1 does it in this order.
 * expect: DC307 certain ranks=1 place=announce */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 2 };

static void announce(const char *what, const unsigned *version, unsigned saved, const char *name)
{
    char text[128];
    snprintf(text, sizeof text, "ddpcheck:%s tensor=%p version=%u saved=%u name=%s", what, (const void *)version, *version, saved, name);
    nvtxMarkA(text);
}

static void step(unsigned *version)
{
    range_push("discriminator step");
    ++*version;
    announce("modify", version, *version, "the optimizer");
    nvtxRangePop();
}

static void stepped_before_second_backward(struct rank *me)
{
    float *gradients = suite_floats(100);
    unsigned version = 0;
    for (int i = 0; i < ITERATIONS; i++) {
        unsigned saved = version;
#ifdef TWIN
        bool early = false;
#else
        bool early = me->rank == 1;
#endif
        announce("save", &version, saved, "a weight of the discriminator");
        if (early)
            step(&version);
        announce("use", &version, saved, "a weight of the discriminator");
        NCCL(ncclAllReduce(gradients, gradients, 100, ncclFloat32, ncclAvg, me->comm, me->stream));
        if (!early)
            step(&version);
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = stepped_before_second_backward, .ranks = 3, .layout = THREADS);
