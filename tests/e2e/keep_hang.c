/* Far more collectives and messages than a small --keep keeps, and at the end rank 1 does not make
 * the last AllReduce. Each part waits for a file in the folder that KEEP_HANG_FOLDER names, which
 * the test makes when the part before is stored: so the smallest ring holds it, however busy the
 * machine is. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/suite/suite.h"

enum { COUNT = 256, ITERATIONS = 4000, PART = 500, PATIENCE_MS = 300000, NAP_MS = 10 };

static void await_part(int part)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/part%d", getenv("KEEP_HANG_FOLDER"), part);
    for (int ms = 0; access(path, F_OK) != 0; ms += NAP_MS) {
        if (ms > PATIENCE_MS)
            exit(3);
        suite_nap_ms(NAP_MS);
    }
}

static void keep_hang(struct rank *me)
{
    float *bucket = suite_floats(COUNT), *passed = suite_floats(COUNT);
    cudaEvent_t reduced;

    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    for (int i = 0; i < ITERATIONS; i++) {
        if (i && i % PART == 0)
            await_part(i / PART);
        NCCL(ncclGroupStart());
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        NCCL(ncclBroadcast(passed, passed, COUNT, ncclFloat32, 0, me->comm, me->stream));
        NCCL(ncclGroupEnd());
        if (me->rank == 0)
            NCCL(ncclSend(passed, COUNT, ncclFloat32, 1, me->comm, me->stream));
        else
            NCCL(ncclRecv(passed, COUNT, ncclFloat32, 0, me->comm, me->stream));
        CUDA(cudaEventRecord(reduced, me->stream));
        CUDA(cudaEventSynchronize(reduced));
    }
    if (me->rank == 0)
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (me->rank == 1)
        suite_nap_ms(600000);
}

SUITE_CASE(.run = keep_hang, .ranks = 2, .layout = PROCESSES);
