/* A GAN: the discriminator reduces in its second backward only, the generator on a communicator of its own and only in
 * every second iteration; rank 0 evaluates now and then, with iterations that are nobody else's.
 * expect: none */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 8, COUNT = 2000 };

static void reduce(struct rank *me, const char *model, ncclComm_t comm, float *gradients, size_t count)
{
    range_push("%s backward", model);
    if (comm)
        NCCL(ncclAllReduce(gradients, gradients, count, ncclFloat32, ncclAvg, comm, me->stream));
    nvtxRangePop();
}

static void step(const char *model)
{
    range_push("%s step", model);
    nvtxRangePop();
}

static void two_models_in_step(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    ncclComm_t generator;
    NCCL(ncclCommSplit(me->comm, 0, me->rank, &generator, NULL));
    for (int i = 0; i < ITERATIONS; i++) {
        if (me->rank == 0 && i % 3 == 2) {
            range_push("eval iteration %d", i);
            nvtxRangePop();
        }
        range_push("iteration %d", i);
        reduce(me, "discriminator", NULL, gradients, COUNT);
        reduce(me, "discriminator", me->comm, gradients, COUNT);
        step("discriminator");
        if (i % 2) {
            reduce(me, "generator", generator, gradients, COUNT / 2);
            step("generator");
        }
        nvtxRangePop();
        wait_for_step(me);
    }
    NCCL(ncclCommDestroy(generator));
}

SUITE_CASE(.run = two_models_in_step, .ranks = 4, .layout = PROCESSES);
