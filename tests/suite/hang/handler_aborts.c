/* A process for each device. Rank 2 reads a sample through a pointer that it never set, and its signal handler aborts.
 * expect: DC205 certain ranks=2 place=give_up
 * says: SIGABRT
 * ends: hang */
#include "tests/suite/suite.h"

#include <signal.h>
#include <stdlib.h>

enum { COUNT = 100 };

static void give_up(int number)
{
    (void)number;
    abort();
}

static float read_sample(const float *sample)
{
    return *(const volatile float *)sample;
}

static void handler_aborts(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    static const float sample = 1;
    const float *samples = &sample;

    signal(SIGSEGV, give_up);
#ifndef TWIN
    if (me->rank == 2)
        samples = NULL;
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (read_sample(samples) > 0)
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = handler_aborts, .ranks = 3, .layout = PROCESSES);
