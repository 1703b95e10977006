/* ring_append.c: measures ns to append a record to a ring that is drained in time, the least that
 * an intercepted call can cost. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"

enum { APPENDS = 5000000, ROUNDS = 5, CAPACITY = 16384 };

static double ns_per_append(struct ring *ring, struct record *records, bool look_at_clock)
{
    double ns[ROUNDS];
    struct record record = {.api = API_cudaEventRecord};
    for (int round = 0; round < ROUNDS; round++) {
        struct ring_end end = ring_end_of(ring, records, CAPACITY);
        uint64_t begin = bench_now_ns();
        for (uint64_t i = 0; i < APPENDS; i++) {
            record.serial = i;
            if (look_at_clock)
                record.time_ns = bench_now_ns();
            if (!ring_append(&end, &record))
                atomic_store_explicit(&ring->tail, atomic_load(&ring->head), memory_order_release);
        }
        ns[round] = (double)(bench_now_ns() - begin) / APPENDS;
    }
    return bench_median(ns, ROUNDS);
}

int main(void)
{
    struct ring *ring = aligned_alloc(64, sizeof *ring);
    struct record *records = calloc(CAPACITY, sizeof *records);
    if (!ring || !records)
        bench_die("memory is short");
    *ring = (struct ring){0};
    printf("%.1f a bare ring append\n", ns_per_append(ring, records, false));
    printf("%.1f the same and a look at the clock\n", ns_per_append(ring, records, true));
    free(records);
    free(ring);
    return 0;
}
