/* A bucket is filled on the default stream of one thread and reduced on that of another: each thread has its own, and
 * nothing orders them.
 * expect: DC303 certain ranks=0-1 place=reduce */
#include <pthread.h>

#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

struct job {
    struct rank *me;
    float *bucket;
};

static void *reduce(void *context)
{
    struct job *job = context;
    CUDA(cudaSetDevice(job->me->rank));
    NCCL(ncclAllReduce(job->bucket, job->bucket, COUNT, ncclFloat32, ncclSum, job->me->comm, cudaStreamPerThread));
    CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    return NULL;
}

static void default_stream_of_another_thread(struct rank *me)
{
    struct job job = { me, suite_floats(COUNT) };
    pthread_t thread;

    CUDA(cudaMemsetAsync(job.bucket, 1, COUNT * sizeof *job.bucket, cudaStreamPerThread));
#ifdef TWIN
    CUDA(cudaStreamSynchronize(cudaStreamPerThread));
#endif
    if (!pthread_create(&thread, NULL, reduce, &job))
        pthread_join(thread, NULL);
    CUDA(cudaStreamSynchronize(cudaStreamPerThread));
}

SUITE_CASE(.run = default_stream_of_another_thread, .ranks = 2, .layout = PROCESSES);
