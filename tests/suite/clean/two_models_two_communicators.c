/* A GAN: generator and discriminator reduce on a communicator and a stream each, in one order on all ranks, and the ranks
 * wait for the host in between.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 2000, BUCKETS = 3, STEPS = 5 };

static void step_model(struct rank *me, float *gradients, ncclComm_t comm, cudaStream_t stream)
{
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        NCCL(ncclAllReduce(gradients + bucket * COUNT, gradients + bucket * COUNT, COUNT, ncclFloat32, ncclAvg, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    (void)me;
}

static void two_models_two_communicators(struct rank *me)
{
    float *generator = suite_floats(COUNT * BUCKETS), *discriminator = suite_floats(COUNT * BUCKETS);
    cudaStream_t other_stream;
    ncclComm_t other;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &other, NULL));
    CUDA(cudaStreamCreateWithFlags(&other_stream, cudaStreamNonBlocking));
    for (int step = 0; step < STEPS; step++) {
        step_model(me, discriminator, other, other_stream);
        step_model(me, generator, me->comm, me->stream);
    }
    NCCL(ncclCommDestroy(other));
}

SUITE_CASE(.run = two_models_two_communicators, .ranks = 4, .layout = PROCESSES);
