/* ns to append a record to a ring that is drained in time: what an intercepted call can't cost less than. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"

enum { APPENDS = 20000000, ROUNDS = 5, CAPACITY = RING_BULK_RECORDS };

int main(void)
{
    struct ring *ring = aligned_alloc(64, sizeof *ring);
    struct record *records = calloc(CAPACITY, sizeof *records);
    struct record record = { .api = API_cudaEventRecord };
    double ns[ROUNDS];
    if (!ring || !records)
        bench_die("memory is short");
    *ring = (struct ring){0};
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begin = bench_now_ns();
        for (uint64_t i = 0; i < APPENDS; i++) {
            record.serial = i;
            if (!ring_append(ring, records, CAPACITY, &record))
                atomic_store_explicit(&ring->tail, atomic_load(&ring->head), memory_order_release);
        }
        ns[round] = (double)(bench_now_ns() - begin) / APPENDS;
    }
    printf("%.1f\n", bench_median(ns, ROUNDS));
    free(records);
    free(ring);
    return 0;
}
