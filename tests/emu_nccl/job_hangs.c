/* What hangs in NCCL hangs here: the stream, not the host; and Abort ends it. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/emu_nccl/buffers.h"

enum { RANKS = 4, COUNT = 1000 };

/* Aborts and waits until the stream is free again, which it must soon be. */
static void abort_and_go_on(struct rank *me)
{
    NCCL(ncclCommAbort(me->comm));
    me->comm = NULL;
    CUDA(cudaStreamSynchronize(me->stream));
}

static void missing_rank(struct rank *me)
{
    void *buffer = floats_new(COUNT, 1);
    ncclResult_t error;

    if (me->rank) {
        NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CHECK(stays_busy(me->stream));
        NCCL(ncclCommGetAsyncError(me->comm, &error));
        CHECK_EQUAL(error, ncclSuccess);
    }
    rank_meet(me, 0);
    abort_and_go_on(me);
    CUDA(cudaDeviceSynchronize());
}

static void killed_rank(struct rank *me)
{
    void *buffer = floats_new(COUNT, 1);
    ncclComm_t rest;
    int killed[] = {RANKS - 1};

    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (me->rank == RANKS - 1)
        kill(getpid(), SIGKILL);
    for (int i = 0; i < 3; i++)
        NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CHECK(stays_busy(me->stream));
    /* The others go on without it. */
    NCCL(ncclCommShrink(me->comm, killed, 1, &rest, NULL, NCCL_SHRINK_ABORT));
    CUDA(cudaStreamSynchronize(me->stream));
    buffer = floats_new(COUNT, 1);
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, rest, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    floats_check(buffer, 0, COUNT, RANKS - 1);
    NCCL(ncclCommDestroy(rest));
    NCCL(ncclCommAbort(me->comm));
    me->comm = NULL;
}

/* The call that rank 1 gets wrong; `which` names how. */
static void call_wrongly(struct rank *me, int which, float *in, float *out)
{
    bool odd = me->rank == 1;

    switch (which) {
    case 0:
        NCCL(ncclAllReduce(in, out, odd ? COUNT / 2 : COUNT, ncclFloat32, ncclSum, me->comm,
                           me->stream));
        break;
    case 1:
        NCCL(ncclAllReduce(in, out, COUNT, odd ? ncclFloat16 : ncclFloat32, ncclSum, me->comm,
                           me->stream));
        break;
    case 2:
        NCCL(ncclAllReduce(in, out, COUNT, ncclFloat32, odd ? ncclMax : ncclSum, me->comm,
                           me->stream));
        break;
    case 3:
        NCCL(ncclBroadcast(in, out, COUNT, ncclFloat32, odd ? 1 : 0, me->comm, me->stream));
        break;
    case 4:
        if (odd)
            NCCL(ncclAllGather(in, out, COUNT / RANKS, ncclFloat32, me->comm, me->stream));
        else
            NCCL(ncclAllReduce(in, out, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        break;
    case 5:
        NCCL(ncclReduce(in, me->rank == (odd ? 1 : 0) ? out : NULL, COUNT, ncclFloat32, ncclSum,
                        odd ? 1 : 0, me->comm, me->stream));
        break;
    default:
        if (me->rank == 0)
            NCCL(ncclSend(in, COUNT, ncclFloat32, 1, me->comm, me->stream));
        else if (odd)
            NCCL(ncclRecv(out, COUNT / 2, ncclFloat32, 0, me->comm, me->stream));
    }
}

enum { WRONG_CALLS = 7 };

static void mismatches_hang(struct rank *me)
{
    float *in = floats_new(COUNT, 1), *out = floats_new(COUNT, 0);

    for (int which = 0; which < WRONG_CALLS; which++) {
        ncclComm_t comm;

        NCCL(ncclCommSplit(me->comm, 0, 0, &comm, NULL));
        struct rank one = *me;

        one.comm = comm;
        call_wrongly(&one, which, in, out);
        if (which < WRONG_CALLS - 1 || me->rank < 2)
            CHECK(stays_busy(me->stream));
        abort_and_go_on(&one);
    }
}

/* All complete, nothing outside a buffer is touched, and the communicator still works. */
static void mismatches_corrupt(struct rank *me)
{
    for (int which = 0; which < WRONG_CALLS; which++) {
        float *in = floats_new(COUNT + 1, 1), *out = floats_new(COUNT + 1, 5);

        call_wrongly(me, which, in, out);
        CUDA(cudaStreamSynchronize(me->stream));
        floats_check(in, 0, COUNT + 1, 1);
        floats_check(out, COUNT, 1, 5);
        if (which == 0) { /* the shorter part is right, the rest was never written */
            floats_check(out, 0, COUNT / 2, RANKS);
            floats_check(out, COUNT / 2, COUNT / 2, 5);
        }
        if (which == 6 && me->rank == 1) {
            floats_check(out, 0, COUNT / 2, 1);
            floats_check(out, COUNT / 2, COUNT / 2, 5);
        }
        NCCL(ncclAllReduce(in, out, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        floats_check(out, 0, COUNT, RANKS);
    }
}

/* The memory of another device: the GPU fails, for good; the call itself knew nothing. */
static void illegal_address(struct rank *me)
{
    void *own = floats_new(COUNT, 1), *foreign;

    if (me->rank == 1) {
        CUDA(cudaSetDevice(5));
        CUDA(cudaMalloc(&foreign, COUNT * sizeof(float)));
        CUDA(cudaSetDevice(1));
        NCCL(ncclAllReduce(foreign, own, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CHECK_EQUAL(cudaStreamSynchronize(me->stream), cudaErrorIllegalAddress);
        CHECK_EQUAL(ncclAllReduce(own, own, COUNT, ncclFloat32, ncclSum, me->comm, me->stream),
                    ncclUnhandledCudaError);
        NCCL(ncclCommAbort(me->comm));
        me->comm = NULL;
        return;
    }
    NCCL(ncclAllReduce(own, own, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CHECK(stays_busy(me->stream));
    abort_and_go_on(me);
}

/* Revoke stops what is under way; the handle stays good for management. */
static void revoked(struct rank *me)
{
    void *buffer = floats_new(COUNT, 1);
    ncclComm_t child;

    if (me->rank)
        NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclCommRevoke(me->comm, NCCL_REVOKE_DEFAULT));
    CUDA(cudaStreamSynchronize(me->stream));
    CHECK_EQUAL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream),
                ncclInvalidUsage);
    CHECK_EQUAL(ncclCommFinalize(me->comm), ncclInvalidUsage);
    NCCL(ncclCommSplit(me->comm, 0, -me->rank, &child, NULL));
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, child, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(child));
}

#define CASE(function, ...)                                                                   \
    {                                                                                         \
        .name = #function, .run = function, .ranks = RANKS, .communicator = true, __VA_ARGS__ \
    }

static const struct job_case cases[] = {
    CASE(missing_rank, .as = BOTH),
    CASE(killed_rank, .as = PROCESSES, .killed = true),
    CASE(mismatches_hang, .as = PROCESSES),
    CASE(mismatches_corrupt, .as = BOTH, .mismatch = "corrupt"),
    CASE(illegal_address, .as = PROCESSES),
    CASE(revoked, .as = BOTH),
};

int main(int argc, char **argv)
{
    return ranks_main(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
