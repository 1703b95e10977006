/* A helper thread launches on the stream of rank 1's GPU; its current device is 0, so the launch fails unseen.
 * expect: DC407 certain ranks=1
 * minimal: yes */
#include "tests/suite/suite.h"

#include <pthread.h>

#include "kernels/kernels.h"

enum { COUNT = 1000 };

static struct rank *trainer;
static float *gradients, *weights;

static void *helper(void *unused)
{
#ifdef TWIN
    CUDA(cudaSetDevice(trainer->rank));
#endif
    (void)kernels_add(COUNT, gradients, weights, trainer->stream);
    return unused;
}

static void launched_from_new_thread(struct rank *me)
{
    pthread_t thread;

    gradients = suite_floats(COUNT);
    weights = suite_floats(COUNT);
    trainer = me;
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    pthread_create(&thread, NULL, helper, NULL);
    pthread_join(thread, NULL);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = launched_from_new_thread, .ranks = 2, .layout = PROCESSES);
