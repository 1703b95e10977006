/* tui_trace.c: writes a trace of a job of 8 ranks that hangs at its end, because rank 5 never made
 * the last call. `bench_tui_trace DATABASE OPERATIONS` has OPERATIONS collectives; run.py's part
 * "tui" opens the result with `ddpcheck tui`. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"

enum { BATCH = 1 << 16, LATE_RANK = 5 };
static const uint64_t comm = 0x5ae77eb5ea4ec1ee;

static void store_member_rows(struct store *store, int rank, uint64_t operations, uint64_t now_ns)
{
    struct error err = {{0}};
    uint64_t issued = operations - (rank == LATE_RANK);
    const struct member_state member = {
        .comm = comm,
        .rank = rank,
        .shown_rank = rank,
        .nranks = JOB_RANKS,
        .process = rank,
        .device = rank,
        .issued = issued,
        .started = issued,
        .done = operations - 1,
        .where = rank == LATE_RANK ? "running" : "in cudaStreamSynchronize",
        .phase = "",
        .last_call = "ncclAllReduce(count=4096, float32, sum)",
        .since_ns = now_ns,
    };
    bench_check(store_member(store, &member, 0, &err), &err);
}

int main(int argc, char **argv)
{
    struct error err = {{0}};
    uint64_t operations = argc == 3 ? strtoull(argv[2], NULL, 10) / JOB_RANKS : 0, rows = 0;
    if (!operations)
        bench_die("tui_trace DATABASE OPERATIONS");
    struct store *store = bench_store_begin(argv[1]);
    struct record record = {.api = API_ncclAllReduce,
                            .phase = RECORD_ENTER,
                            .op = {.comm = comm, .datatype = TYPE_FLOAT32, .root = -1}};
    for (uint64_t number = 0; number < operations; number++) {
        for (int rank = 0; rank < JOB_RANKS; rank++) {
            if (rank == LATE_RANK && number == operations - 1)
                continue;
            record.time_ns = (number * JOB_RANKS + (uint64_t)rank) * 1000;
            record.serial = record.op.launch = number + 1;
            record.op.number = number;
            record.op.rank = rank;
            record.op.count = 4096 << number % 3;
            record.op.recvbuff = record.op.sendbuff = 0x7f0000000000 + (number % 16 << 20);
            bench_check(store_event(store, rank, &record, &err), &err);
            if (++rows % BATCH == 0) {
                bench_check(store_commit(store, &err), &err);
                bench_check(store_begin(store, &err), &err);
            }
        }
    }
    for (int rank = 0; rank < JOB_RANKS; rank++)
        store_member_rows(store, rank, operations, operations * JOB_RANKS * 1000);
    bench_check(store_commit(store, &err), &err);
    bench_check(store_close(store, &err), &err);
    printf("%llu\n", (unsigned long long)rows);
    return 0;
}
