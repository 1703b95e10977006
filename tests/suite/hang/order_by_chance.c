/* Two threads of each process reduce a model each on its own communicator and stream, without a lock: on rank 2 the second
 * thread happens to be first. The twin hands the turn from thread to thread and orders the streams by an event.
 * expect: DC204 possible ranks=2 place=reduce */
#include "tests/suite/suite.h"

#include <pthread.h>

enum { COUNT = 1000 };

struct model {
    int device;
    ncclComm_t comm;
    cudaStream_t stream;
    float *gradients;
};

static void *reduce(void *argument)
{
    struct model *model = argument;

    CUDA(cudaSetDevice(model->device));
    NCCL(ncclAllReduce(model->gradients, model->gradients, COUNT, ncclFloat32, ncclSum, model->comm, model->stream));
    return NULL;
}

static void order_by_chance(struct rank *me)
{
    struct model model[2] = {{ me->rank, me->comm, me->stream, suite_floats(COUNT) },
                             { me->rank, NULL, NULL, suite_floats(COUNT) }};
    pthread_t thread;
    cudaEvent_t issued;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &model[1].comm, NULL));
    CUDA(cudaStreamCreateWithFlags(&model[1].stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&issued));
#ifdef TWIN
    int first = 0;
#else
    int first = me->rank == 2;          /* chance, made sure of */
#endif
    for (int i = 0; i < 2; i++) {
        pthread_create(&thread, NULL, reduce, &model[first ^ i]);
        pthread_join(thread, NULL);
#ifdef TWIN
        CUDA(cudaEventRecord(issued, model[0].stream));
        CUDA(cudaStreamWaitEvent(model[1].stream, issued, 0));
#endif
    }
    CUDA(cudaDeviceSynchronize());
    NCCL(ncclCommDestroy(model[1].comm));
}

SUITE_CASE(.run = order_by_chance, .ranks = 4, .layout = PROCESSES);
