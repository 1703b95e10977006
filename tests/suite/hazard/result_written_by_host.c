/* The host of rank 1 writes to the managed buffer while AllReduces leave their results there.
 * expect: DC308 certain ranks=1 place=result_written_by_host
 * options: --hash
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 19, ROUNDS = 8 };

static void result_written_by_host(struct rank *me)
{
    float *bucket;
    unsigned at = 0;

    CUDA(cudaMallocManaged((void **)&bucket, COUNT * sizeof *bucket, cudaMemAttachGlobal));
    CUDA(cudaMemset(bucket, 0, COUNT * sizeof *bucket));
    CUDA(cudaDeviceSynchronize());
    for (int round = 0; round < ROUNDS; round++)
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifdef TWIN
    CUDA(cudaStreamSynchronize(me->stream));
#endif
    do
        for (int i = 0; me->rank == 1 && i < 1000; i++)
            bucket[at++ * 997 % COUNT] = (float)i;
    while (cudaStreamQuery(me->stream) == cudaErrorNotReady);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = result_written_by_host, .ranks = 3, .layout = PROCESSES);
