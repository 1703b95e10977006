/* soak.c: the processes of a long job, without the time between: records that they would make in an
 * hour go into their rings as fast as the collector makes room.
 *
 *     bench_soak RINGS RECORDS
 *
 * Prints how many records there were, and how many collectives among them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/bench.h"
#include "lib/trace/names.h"

enum { SOAK_CAPACITY = 1 << 14 };
static const long nap_ns = 200000;

static void put(struct ring_file *file, const struct record *record)
{
    struct record *records;
    int kind = record->api == API_cudaLaunchKernel ? RING_BULK : RING_CONTROL;
    struct ring *ring = bench_ring(file, kind, &records);
    while (atomic_load(&ring->head) - atomic_load(&ring->tail) >= SOAK_CAPACITY)
        nanosleep(&(struct timespec){0, nap_ns}, NULL);
    struct ring_end end = ring_end_of(ring, records, SOAK_CAPACITY);
    if (!ring_append(&end, record))
        bench_die("a record was lost although there was room");
    atomic_store(&file->serial, record->serial);
}

int main(int count, char **arguments)
{
    struct ring_file *file[JOB_RANKS];
    struct bench_job job = {0};
    struct record record;
    uint64_t collectives = 0, written = 0;
    if (count != 3)
        bench_die("usage: bench_soak RINGS RECORDS");
    uint64_t records = strtoull(arguments[2], NULL, 10);
    for (int rank = 0; rank < JOB_RANKS; rank++)
        file[rank] = bench_ring_file(arguments[1], rank, SOAK_CAPACITY, true);
    while (written < records || !bench_job_step_ends(&job)) {
        int rank = bench_job_next(&job, &record);
        if (!record.serial)
            continue; /* the collector's own */
        record.time_ns = bench_now_ns();
        put(file[rank], &record);
        written++;
        collectives += record.phase == RECORD_ENTER && api_class_of(record.api) == CLASS_COLLECTIVE;
    }
    for (int rank = 0; rank < JOB_RANKS; rank++, written++) {
        record = (struct record){.api = API_notice_exit, .time_ns = bench_now_ns()};
        record.serial = ++job.serial[rank];
        record.end.how = END_EXIT;
        put(file[rank], &record);
    }
    printf("%" PRIu64 " %" PRIu64 "\n", written, collectives);
    return 0;
}
