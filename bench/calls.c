/* calls.c: measures the processor time in ns per call of some CUDA and NCCL functions whose own
 * work is small. bench/run.py runs this with and without the shim: the difference is what the shim
 * costs. Calls come in bursts that fit the rings and the queue of an emulated stream, with a rest
 * after each in which both are emptied, as in a real step. Only the calling thread's time in bursts
 * counts. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/bench.h"

/* A watched operation of NCCL puts three items into the queue, which has room for 1,024. */
enum { BURST = 256, BURSTS = 240, REST_MS = 4, BUFFER_BYTES = 1 << 20 };
enum { BUCKET_BYTES = 25 << 20 }; /* the default of PyTorch's DistributedDataParallel */

struct call_subject {
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t event;
    void *buffer, *source, *bucket, *scratch; /* NCCL uses all but `scratch` */
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

static void call_reduce_bucket(const struct call_subject *on)
{
    ncclAllReduce(on->bucket, on->bucket, BUCKET_BYTES / sizeof(float), ncclFloat32, ncclSum,
                  on->comm, on->stream);
}

static void call_broadcast(const struct call_subject *on)
{
    ncclBroadcast(on->buffer, on->buffer, 1, ncclFloat32, 0, on->comm, on->stream);
}

static void call_send_receive(const struct call_subject *on)
{
    ncclGroupStart();
    ncclSend(on->source, 1, ncclFloat32, 0, on->comm, on->stream);
    ncclRecv(on->buffer, 1, ncclFloat32, 0, on->comm, on->stream);
    ncclGroupEnd();
}

static void call_record_event(const struct call_subject *on)
{
    cudaEventRecord(on->event, on->stream);
}

static void call_query_event(const struct call_subject *on)
{
    cudaEventQuery(on->event);
}

static void call_query_stream(const struct call_subject *on)
{
    cudaStreamQuery(on->stream);
}

static void call_copy_used(const struct call_subject *on)
{
    cudaMemcpyAsync(on->buffer, on->source, 1, cudaMemcpyDeviceToDevice, on->stream);
}

static void call_allocate(const struct call_subject *on)
{
    (void)on;
    void *memory;
    if (cudaMalloc(&memory, 1) == cudaSuccess)
        cudaFree(memory);
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
    {"cudaMemcpyAsync (memory that NCCL uses)", 1, call_copy_used},
    {"cudaMalloc, cudaFree", 2, call_allocate},
    {"cudaEventRecord", 1, call_record_event},
    {"cudaEventQuery", 1, call_query_event},
    {"cudaStreamQuery (idle stream)", 1, call_query_stream},
    {"ncclBroadcast (1 rank, 1 element)", 1, call_broadcast},
    {"ncclSend, ncclRecv in a group (1 rank, 1 element)", 4, call_send_receive},
    {"ncclAllReduce (1 rank, 25 MB)", 1, call_reduce_bucket},
};

static uint64_t thread_time_ns(void)
{
    struct timespec time;
    NEED(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time));
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static double ns_per_call(const struct call_subject *on, size_t loop)
{
    double ns[BURSTS];
    for (int burst = 0; burst < BURSTS; burst++) {
        uint64_t begin = thread_time_ns();
        for (int i = 0; i < BURST; i++)
            loops[loop].turn(on);
        ns[burst] = (double)(thread_time_ns() - begin) / (BURST * loops[loop].calls);
        NEED(cudaStreamSynchronize(on->stream));
        nanosleep(&(struct timespec){.tv_nsec = REST_MS * 1000000}, NULL);
    }
    return bench_median(ns, BURSTS);
}

/* Where a counter of instructions closes one account and opens the next (--dump-before). */
__attribute__((noinline)) static void bench_mark(void)
{
    __asm__ volatile("");
}

/* For a counter of instructions, which needs no rest: what all turns after the first TURNS cost
 * stands between two marks. Prints how many calls a turn has. */
static void count_instructions(const struct call_subject *on, size_t loop, int turns)
{
    for (int i = 0; i < 2 * turns; i++) {
        if (i == turns)
            bench_mark();
        loops[loop].turn(on);
    }
    bench_mark();
    printf("%d %s\n", loops[loop].calls, loops[loop].name);
}

/* Without arguments: measures every loop. With TURNS: makes that many turns of each
 * between marks. */
int main(int argc, char **argv)
{
    enum { LOOPS = sizeof loops / sizeof loops[0] };
    struct call_subject on;
    int device = 0;
    NEED(cudaSetDevice(device));
    NEED(cudaStreamCreateWithFlags(&on.stream, cudaStreamNonBlocking));
    NEED(cudaEventCreateWithFlags(&on.event, cudaEventDisableTiming));
    NEED(cudaMalloc(&on.buffer, BUFFER_BYTES));
    NEED(cudaMalloc(&on.source, BUFFER_BYTES));
    NEED(cudaMalloc(&on.bucket, BUCKET_BYTES));
    NEED(cudaMalloc(&on.scratch, BUFFER_BYTES));
    NEED(ncclCommInitAll(&on.comm, 1, &device));
    for (size_t loop = 0; loop < LOOPS; loop++)
        if (argc == 2)
            count_instructions(&on, loop, atoi(argv[1]));
        else
            printf("%.1f %s\n", ns_per_call(&on, loop), loops[loop].name);
    NEED(ncclCommDestroy(on.comm));
    NEED(cudaFree(on.buffer));
    NEED(cudaFree(on.source));
    NEED(cudaFree(on.bucket));
    NEED(cudaFree(on.scratch));
    return 0;
}
