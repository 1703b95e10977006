/* long.c: a job of days in minutes: the analyzer alone, over many events of a made-up job that
 * makes all kinds of order and never stands still. Prints its speed and its memory as it goes: the
 * memory must stay where it is.
 *
 *     bench_long [EVENTS]     default 50,000,000 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/analyzer.h"
#include "bench/bench.h"

enum { RANKS = 2, BUCKETS = 8, PIECES = 10, KERNEL_STREAMS = 3, BUCKET_BYTES = 1 << 20 };
static const uint64_t comms[2] = {0x5ae7000000000001, 0x5ae7000000000002};

struct rank {
    struct analyzer *analyzer;
    int number;
    uint64_t serial, step, operations[2], launches[2];
    uint64_t fed;
};

static void feed_rank(struct rank *rank, struct record record)
{
    record.serial = ++rank->serial;
    record.time_ns = 1000000000000 + rank->serial * 1000;
    record.thread = 100 + (uint32_t)rank->number;
    record.device = rank->number;
    if (analyzer_feed(rank->analyzer, rank->number, &record))
        bench_die("memory is short");
    rank->fed++;
}

static uint64_t bucket_at(uint64_t i)
{
    return 0x7f0000000000 + i * 2 * BUCKET_BYTES;
}

static void feed_kernel(struct rank *rank, uint64_t stream, uint64_t written, uint64_t read)
{
    struct record record = {.api = API_cudaLaunchKernel, .stream = stream};
    record.launch.function = 0x9e3779b97f4a7c15;
    record.launch.count = 2;
    record.launch.written = 1;
    record.launch.pointer[0] = written;
    record.launch.pointer[1] = read;
    feed_rank(rank, record);
}

static void feed_event_call(struct rank *rank, uint16_t api, uint64_t event, uint64_t stream)
{
    struct record record = {.api = api, .stream = stream};
    record.event.event = event;
    record.event.flags = api == API_cudaStreamCreateWithFlags;
    feed_rank(rank, record);
}

static void feed_wait(struct rank *rank, uint16_t api, uint64_t stream, uint64_t event)
{
    struct record record = {.api = api, .phase = RECORD_ENTER, .stream = stream};
    record.wait.event = event;
    feed_rank(rank, record);
    feed_rank(rank,
              (struct record){.api = api, .phase = RECORD_LEAVE, .leave = {.enter = rank->serial}});
}

static void feed_all_reduce(struct rank *rank, int comm, uint64_t stream, uint64_t buffer)
{
    struct record record = {
        .api = API_ncclAllReduce, .phase = RECORD_ENTER, .stream = stream, .stack = 0x77};
    record.op.comm = comms[comm];
    record.op.number = rank->operations[comm]++;
    record.op.sendbuff = record.op.recvbuff = buffer;
    record.op.count = BUCKET_BYTES / 4;
    record.op.datatype = TYPE_FLOAT32;
    record.op.root = -1;
    record.op.rank = rank->number;
    record.op.slot = (uint32_t)comm;
    record.op.launch = ++rank->launches[comm];
    feed_rank(rank, record);
    feed_rank(rank, (struct record){.api = API_ncclAllReduce,
                                    .phase = RECORD_LEAVE,
                                    .leave = {.enter = rank->serial}});
}

/* Memory of a pool that moves on, a stream of its own for it and an event that is made anew. */
static void feed_passing_work(struct rank *rank)
{
    uint64_t at = 0x600000000000 + rank->step % 4096 * 65536, stream = 0x10000 + rank->step * 16;
    uint64_t done = 0x900000 + rank->step * 16;
    feed_event_call(rank, API_cudaStreamCreateWithFlags, 0, stream);
    feed_rank(rank, (struct record){.api = API_cudaMallocAsync,
                                    .stream = stream,
                                    .memory = {.pointer = at, .bytes = 65536}});
    feed_rank(rank, (struct record){.api = API_cudaMemsetAsync,
                                    .stream = stream,
                                    .copy = {.dst = at, .bytes = 65536}});
    feed_event_call(rank, API_cudaEventCreateWithFlags, done, 0);
    feed_event_call(rank, API_cudaEventRecord, done, stream);
    feed_event_call(rank, API_cudaStreamWaitEvent, done, 0x1000);
    feed_rank(rank, (struct record){
                        .api = API_cudaFreeAsync, .stream = 0x1000, .memory = {.pointer = at}});
    feed_event_call(rank, API_cudaEventDestroy, done, 0);
    feed_event_call(rank, API_cudaStreamDestroy, 0, stream);
}

static void feed_step(struct rank *rank)
{
    uint64_t streams[KERNEL_STREAMS] = {0x1000, 0x1010, 0};
    for (uint64_t i = 0; i < BUCKETS; i++) {
        uint64_t bucket = bucket_at(i + rank->step % 2 * BUCKETS),
                 communication = i % 2 ? 0x2010 : 0x2000;
        if (rank->step >= 2)
            feed_event_call(rank, API_cudaStreamWaitEvent, 0x5000 + i + rank->step % 2 * BUCKETS,
                            0x1000);
        for (uint64_t k = 0; k < PIECES; k++)
            feed_kernel(rank, streams[k % 2 ? 0 : 1],
                        0x700000000000 + (rank->step * 97 + i * PIECES + k) % 20000 * 4096,
                        bucket_at(100 + k));
        feed_kernel(rank, 0x1000, bucket, bucket_at(50));
        feed_event_call(rank, API_cudaEventRecord, 0x4000 + i, 0x1000);
        feed_event_call(rank, API_cudaStreamWaitEvent, 0x4000 + i, communication);
        feed_all_reduce(rank, (int)(i % 2), communication, bucket);
        feed_event_call(rank, API_cudaEventRecord, 0x5000 + i + rank->step % 2 * BUCKETS,
                        communication);
    }
    feed_kernel(rank, 0, bucket_at(60), bucket_at(61));
    feed_passing_work(rank);
    if (rank->step % 50 == 49)
        feed_wait(rank, API_cudaEventSynchronize, 0, 0x5000 + rank->step % 2 * BUCKETS);
    for (uint32_t comm = 0; comm < 2; comm++) {
        struct record progress = {.api = API_notice_progress};
        progress.progress.slot = comm;
        progress.progress.started = progress.progress.done = rank->launches[comm];
        feed_rank(rank, progress);
    }
    feed_rank(rank, (struct record){.api = API_notice_tick});
    rank->step++;
}

static void begin_rank(struct rank *rank)
{
    for (int comm = 0; comm < 2; comm++) {
        struct record record = {.api = API_notice_member};
        record.comm.comm = comms[comm];
        record.comm.nranks = RANKS;
        record.comm.rank = record.comm.device = rank->number;
        feed_rank(rank, record);
    }
    static const uint64_t streams[] = {0x1000, 0x1010, 0x2000, 0x2010};
    for (int i = 0; i < 4; i++)
        feed_event_call(rank, API_cudaStreamCreateWithFlags, 0, streams[i]);
    for (uint64_t i = 0; i < 2 * BUCKETS; i++) {
        feed_event_call(rank, API_cudaEventCreateWithFlags, 0x4000 + i, 0);
        feed_event_call(rank, API_cudaEventCreateWithFlags, 0x5000 + i, 0);
    }
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t findings;
static void report_unexpected(void *context, const struct finding *finding)
{
    (void)context;
    if (!findings++)
        fprintf(stderr, "bench_long: found in a correct job: %s: %s\n", code_name(finding->code),
                finding->what);
}

int main(int argc, char **argv)
{
    uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 50000000, printed = 0;
    struct analyzer *analyzer =
        analyzer_new(&(struct analyzer_options){.on_finding = report_unexpected});
    struct rank rank[RANKS] = {{0}};
    for (int i = 0; analyzer && i < RANKS; i++) {
        struct process_info info = bench_process(i);
        info.world_size = RANKS;
        rank[i].analyzer = analyzer;
        rank[i].number = i;
        if (analyzer_add_process(analyzer, i, &info))
            bench_die("memory is short");
        begin_rank(&rank[i]);
    }
    double start = processor_seconds();
    printf("%12s %16s %14s\n", "events", "events/s (CPU)", "heap, MB");
    while (rank[0].fed + rank[1].fed < events) {
        for (int i = 0; i < RANKS; i++)
            feed_step(&rank[i]);
        uint64_t fed = rank[0].fed + rank[1].fed;
        if (fed * 10 / events != printed) {
            printed = fed * 10 / events;
            struct mallinfo2 heap = mallinfo2();
            printf("%12ju %16.0f %14.2f\n", (uintmax_t)fed,
                   (double)fed / (processor_seconds() - start),
                   (double)(heap.uordblks + heap.hblkhd) / 1e6);
        }
    }
    uint64_t skipped = analyzer_skipped(analyzer);
    analyzer_free(analyzer);
    if (skipped || findings)
        bench_die("%ju records skipped, %ju findings in a correct job", (uintmax_t)skipped,
                  (uintmax_t)findings);
    return 0;
}
