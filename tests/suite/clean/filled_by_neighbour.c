/* Rank 0's bucket is filled by rank 1, which has opened it by IPC, and the ranks reduce it after that: no call of rank 0
 * ever writes it.
 * expect: none */
#include <sys/mman.h>

#include "tests/suite/suite.h"

enum { COUNT = 1 << 12 };

static cudaIpcMemHandle_t *handle;      /* shared by the ranks, which are forked later */

__attribute__((constructor)) static void share(void)
{
    handle = mmap(NULL, sizeof *handle, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void fill(struct rank *me)
{
    void *bucket;

    suite_await(me, 0);
    CUDA(cudaIpcOpenMemHandle(&bucket, *handle, cudaIpcMemLazyEnablePeerAccess));
    CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof(float), me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaIpcCloseMemHandle(bucket));
    suite_tell(me, 1);
}

static void filled_by_neighbour(struct rank *me)
{
    float *bucket;

    if (me->rank == 0) {
        CUDA(cudaMalloc((void **)&bucket, COUNT * sizeof *bucket));
        CUDA(cudaIpcGetMemHandle(handle, bucket));
        suite_tell(me, 0);
        suite_await(me, 1);
    } else {
        bucket = suite_floats(COUNT);
        fill(me);
    }
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
}

SUITE_CASE(.run = filled_by_neighbour, .ranks = 2, .layout = PROCESSES);
