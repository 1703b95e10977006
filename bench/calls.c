/* calls.c: measures ns per call of some CUDA and NCCL functions whose own work is small. bench/run
 * runs this with and without the shim: the difference is what the shim costs. Calls come in bursts
 * that the rings can hold, with a rest after each in which the collector empties them, as in a real
 * step; only the bursts are timed. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <time.h>

#include "bench/bench.h"

enum { BURST = 512, BURSTS = 120, REST_MS = 4, BUFFER_BYTES = 1 << 20 };

struct call_subject {
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t event;
    void *buffer, *scratch; /* NCCL uses the one, not the other */
};

#define NEED(call) bench_need((int)(call), #call)

static void call_empty_group(const struct call_subject *on)
{
    (void)on;
    ncclGroupStart();
    ncclGroupEnd();
}

static void call_wait_event(const struct call_subject *on)
{
    cudaStreamWaitEvent(on->stream, on->event, 0);
}

static void call_synchronize(const struct call_subject *on)
{
    cudaStreamSynchronize(on->stream);
}

static void set_used(const struct call_subject *on)
{
    cudaMemsetAsync(on->buffer, 0, 1, on->stream);
}

static void set_scratch(const struct call_subject *on)
{
    cudaMemsetAsync(on->scratch, 0, 1, on->stream);
}

static void call_all_reduce(const struct call_subject *on)
{
    ncclAllReduce(on->buffer, on->buffer, 1, ncclFloat32, ncclSum, on->comm, on->stream);
}

static const struct {
    const char *name;
    int calls; /* that one turn makes */
    void (*turn)(const struct call_subject *on);
} loops[] = {
    {"cudaStreamSynchronize (idle stream)", 1, call_synchronize},
    {"ncclGroupStart, ncclGroupEnd (empty)", 2, call_empty_group},
    {"cudaStreamWaitEvent (event not recorded)", 1, call_wait_event},
    {"ncclAllReduce (1 rank, 1 element)", 1, call_all_reduce},
    {"cudaMemsetAsync (memory that NCCL uses)", 1, set_used},
    {"cudaMemsetAsync (other memory: not recorded)", 1, set_scratch},
};

static double ns_per_call(const struct call_subject *on, int loop)
{
    double ns[BURSTS];
    for (int burst = 0; burst < BURSTS; burst++) {
        uint64_t begin = bench_now_ns();
        for (int i = 0; i < BURST; i++)
            loops[loop].turn(on);
        ns[burst] = (double)(bench_now_ns() - begin) / (BURST * loops[loop].calls);
        NEED(cudaStreamSynchronize(on->stream));
        nanosleep(&(struct timespec){.tv_nsec = REST_MS * 1000000}, NULL);
    }
    return bench_median(ns, BURSTS);
}

int main(void)
{
    struct call_subject on;
    int device = 0;
    NEED(cudaSetDevice(device));
    NEED(cudaStreamCreateWithFlags(&on.stream, cudaStreamNonBlocking));
    NEED(cudaEventCreateWithFlags(&on.event, cudaEventDisableTiming));
    NEED(cudaMalloc(&on.buffer, BUFFER_BYTES));
    NEED(cudaMalloc(&on.scratch, BUFFER_BYTES));
    NEED(ncclCommInitAll(&on.comm, 1, &device));
    for (size_t loop = 0; loop < sizeof loops / sizeof loops[0]; loop++)
        printf("%.1f %s\n", ns_per_call(&on, (int)loop), loops[loop].name);
    NEED(ncclCommDestroy(on.comm));
    NEED(cudaFree(on.buffer));
    NEED(cudaFree(on.scratch));
    return 0;
}
