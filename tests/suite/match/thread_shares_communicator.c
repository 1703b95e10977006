/* A thread that reports metrics and the main thread make calls on one communicator. On rank 1 the thread comes first, on the
 * others the main thread.
 * expect: DC102 certain ranks=1
 * origin: two threads of a process make calls on this communicator .. on rank 1 the call at report() .. on the others that at step()
 * fix: Give each thread a process group (communicator) of its own
 * ends: hang */
#include "tests/suite/suite.h"

#include <pthread.h>

enum { COUNT = 200 };

static void step(struct rank *me, float *data)
{
    NCCL(ncclAllReduce(data, data, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void *report(void *context)
{
    struct rank *me = context;
    CUDA(cudaSetDevice(me->rank));
    float *metric = suite_floats(2);
    NCCL(ncclAllReduce(metric, metric, 2, ncclFloat32, ncclSum, me->comm, me->stream));
    return NULL;
}

static void report_in_thread(struct rank *me)
{
    pthread_t thread;
    pthread_create(&thread, NULL, report, me);
    pthread_join(thread, NULL); /* so that the order of this case is not chance */
}

static void thread_shares_communicator(struct rank *me)
{
    float *data = suite_floats(COUNT);
    bool thread_first = false;

#ifndef TWIN
    thread_first = me->rank == 1;
#endif
    for (int i = 0; i < 4; i++)
        step(me, data);
    if (thread_first)
        report_in_thread(me);
    step(me, data);
    if (!thread_first)
        report_in_thread(me);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = thread_shares_communicator, .ranks = 3, .layout = PROCESSES);
