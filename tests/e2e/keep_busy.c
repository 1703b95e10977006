/* A fault at the start, if there is one, and then far more CUDA calls than a small --keep keeps:
 * rank 1 clears its bucket while the AllReduce of it may still run. What follows waits for the file
 * that KEEP_BUSY_GO names, so that the start is analysed whatever the rings can hold. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/suite/suite.h"

enum { COUNT = 1 << 12, ITERATIONS = 200, CLEARS = 250, PATIENCE_MS = 300000, NAP_MS = 10 };

static void await_file(const char *path)
{
    for (int ms = 0; access(path, F_OK) != 0; ms += NAP_MS) {
        if (ms > PATIENCE_MS)
            exit(3);
        suite_nap_ms(NAP_MS);
    }
}

static void keep_busy(struct rank *me)
{
    float *bucket = suite_floats(COUNT), *scratch = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t reduced;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    for (int i = 0; i < ITERATIONS; i++) {
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaEventRecord(reduced, me->stream));
#ifdef TWIN
        CUDA(cudaStreamWaitEvent(compute, reduced, 0));
#else
        if (i > 0 || me->rank != 1)
            CUDA(cudaStreamWaitEvent(compute, reduced, 0));
#endif
        CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, compute));
        for (int k = 0; k < CLEARS; k++)
            CUDA(cudaMemsetAsync(scratch, k, sizeof *scratch, compute));
        CUDA(cudaStreamSynchronize(compute));
        if (i == 0)
            await_file(getenv("KEEP_BUSY_GO"));
        suite_nap_ms(1);
    }
}

SUITE_CASE(.run = keep_busy, .ranks = 2, .layout = PROCESSES);
