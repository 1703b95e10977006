/* The host of rank 1 writes to the managed buffer while AllReduces leave their results there.
 * expect: DC308 certain ranks=1 place=result_written_by_host
 * options: --hash
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 22, ROUNDS = 12 };

static void result_written_by_host(struct rank *me)
{
    float *bucket;
    volatile float *seen;

    CUDA(cudaMallocManaged((void **)&bucket, COUNT * sizeof *bucket, cudaMemAttachGlobal));
    CUDA(cudaMemset(bucket, me->rank != 1, COUNT * sizeof *bucket));
    CUDA(cudaDeviceSynchronize());
    seen = bucket;
    for (int round = 0; round < ROUNDS; round++) {
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifdef TWIN
        CUDA(cudaStreamSynchronize(me->stream));
#endif
        while (me->rank == 1 && seen[COUNT - 1] == 0)
            suite_nap_ms(1);
        for (int i = COUNT; me->rank == 1 && i-- > 0;)
            seen[i] = 0;
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = result_written_by_host, .ranks = 3, .layout = PROCESSES);
