/* What is slow because threads waited for a processor: a rank whose container has too few of them
 * (DC601); on a host that is busy for all it is no finding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

#define MS UINT64_C(1000000)

enum { RANKS = 4, SLOW = 1, GRADIENTS = 0x10, ITERATIONS = 120, WORK_MS = 50, TRANSFER_MS = 1 };

/* Rank 1 takes so much longer: its host issues later, or its GPU is slower. Or the operations of
 * all do, from iteration `since` on. Of each second a thread of it waits so long for a processor,
 * also from then on, and one of each of the others. */
struct machine {
    int slower_ms, transfer_ms, since;
    bool is_late;
    int waits_ms, others_wait_ms, throttled_ms;
    int iterations; /* 0: ITERATIONS */
};

static void read_delays(struct job *job, const struct machine *machine, bool is_since)
{
    for (int rank = 0; rank < RANKS; rank++) {
        int waited_ms = rank == SLOW && is_since ? machine->waits_ms : machine->others_wait_ms;
        struct record record = {.api = API_notice_run_delay};
        record.run_delay.interval_ns = 1000 * MS;
        record.run_delay.longest_ns = record.run_delay.all_ns = MS * (uint64_t)waited_ms;
        record.run_delay.throttled_ns = rank == SLOW ? MS * (uint64_t)machine->throttled_ms : 0;
        if (waited_ms)
            job_record(job, rank, record);
    }
}

static void issue_one(struct job *job, int rank)
{
    ALL_REDUCE(job, rank, WORLD, 1000, .stream = GRADIENTS);
    wait_enter(job, rank, API_cudaStreamSynchronize, GRADIENTS);
}

static void iteration(struct job *job, const struct machine *machine, bool is_since)
{
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != SLOW || !machine->is_late)
            issue_one(job, rank);
    job_sleep_ms(job, WORK_MS);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != SLOW)
            gpu_started(job, rank, WORLD, GRADIENTS);
    job_sleep_ms(job, (uint64_t)machine->slower_ms);
    if (machine->is_late)
        issue_one(job, SLOW);
    gpu_started(job, SLOW, WORLD, GRADIENTS);
    job_sleep_ms(job,
                 is_since && machine->transfer_ms ? (uint64_t)machine->transfer_ms : TRANSFER_MS);
    for (int rank = 0; rank < RANKS; rank++)
        gpu_done(job, rank, WORLD, GRADIENTS);
    for (int rank = 0; rank < RANKS; rank++)
        call_leave(job, rank);
}

/* Returns the last note's sentence. */
static const char *expect_notes(struct machine machine, const char *expected)
{
    static struct verdict verdict;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    uint64_t read_ns = job_now(job);
    int iterations = machine.iterations ? machine.iterations : ITERATIONS;
    for (int number = 0; number < iterations; number++) {
        iteration(job, &machine, number >= machine.since);
        for (; job_now(job) - read_ns >= 1000 * MS; read_ns += 1000 * MS)
            read_delays(job, &machine, number >= machine.since);
    }
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 0);
    assert_string_equal(verdict.notes, expected);
    job_free(job);
    return verdict.last_note.what;
}

/* Its peers hardly wait: that is a limit of its own, and no slow GPU. */
static void a_rank_has_too_few_processors(void **state)
{
    (void)state;
    const struct machine limited = {
        .slower_ms = 60, .waits_ms = 500, .others_wait_ms = 50, .iterations = 2 * ITERATIONS};
    struct machine late = limited, throttled = limited;
    late.is_late = true;
    throttled.throttled_ms = 400;
    throttled.others_wait_ms = 200;
    throttled.iterations = ITERATIONS;
    const char *what = expect_notes(limited, "DC601:1 ");
    assert_has(what, "rank 1 (host node1) makes the others wait 60 ms of each iteration of 111 ms "
                     "(54%): its host is late, because threads there waited for a processor, ");
    assert_null(strstr(what, "CPU limit"));
    assert_has(expect_notes(late, "DC601:1 "), "threads there waited for a processor, ");
    assert_has(expect_notes(throttled, "DC601:1 "), "; the CPU limit of their cgroup was used up");
}

/* Others wait as well, or it was for a moment. */
static void a_busy_host_is_no_finding(void **state)
{
    (void)state;
    expect_notes((struct machine){.slower_ms = 60, .waits_ms = 500, .others_wait_ms = 150}, "");
    expect_notes((struct machine){.slower_ms = 60, .waits_ms = 500}, "");
    expect_notes((struct machine){.slower_ms = 60, .waits_ms = 500, .iterations = 40}, "");
    expect_notes(
        (struct machine){
            .transfer_ms = 80, .since = ITERATIONS, .waits_ms = 500, .iterations = 2 * ITERATIONS},
        "");
}

/* It waits too little for what it loses, or no more than the others. */
static void waiting_is_not_the_reason(void **state)
{
    (void)state;
    const struct machine slow = {.slower_ms = 60, .waits_ms = 100},
                         busy = {.slower_ms = 60, .waits_ms = 500, .others_wait_ms = 450},
                         link = {.transfer_ms = 80,
                                 .since = ITERATIONS,
                                 .waits_ms = 100,
                                 .iterations = 2 * ITERATIONS};
    struct machine late = slow;
    late.is_late = true;
    expect_notes(slow, "DC604:1 ");
    expect_notes(busy, "DC604:1 ");
    expect_notes(link, "DC606:0-3 ");
    assert_has(expect_notes(late, "DC601:1 "), ": the GPU has nothing to do then");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_has_too_few_processors),
        cmocka_unit_test(a_busy_host_is_no_finding),
        cmocka_unit_test(waiting_is_not_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
