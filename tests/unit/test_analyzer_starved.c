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

enum {
    RANKS = 4,
    SLOW = 1,
    GRADIENTS = 0x10,
    ITERATIONS = 120,
    JUDGED = 100,
    WORK_MS = 50,
    TRANSFER_MS = 1
};

/* Rank 1 takes longer in some iterations, since its host issues later or its GPU is slower; or the
 * operations of all ranks do from iteration `since` on. Also from then on a thread of rank 1, of
 * each other rank and of a child of rank 1 (its loader) waits for a processor in each second. */
struct machine {
    int slower_ms, transfer_ms, since, period;
    bool is_late, is_timed;
    int waits_ms, others_wait_ms, throttled_ms, loader_waits_ms;
    int iterations; /* 0: ITERATIONS */
};

static void read_delays(struct job *job, const struct machine *machine, bool is_since)
{
    for (int rank = 0; rank < RANKS; rank++) {
        int waited_ms = rank == SLOW ? machine->waits_ms : machine->others_wait_ms;
        if (machine->since && !is_since)
            waited_ms = 0;
        struct record record = {.api = API_notice_run_delay};
        record.run_delay.interval_ns = 1000 * MS;
        record.run_delay.longest_ns = record.run_delay.all_ns = MS * (uint64_t)waited_ms;
        record.run_delay.throttled_ns = rank == SLOW ? MS * (uint64_t)machine->throttled_ms : 0;
        record.run_delay.children_ns =
            rank == SLOW && is_since ? MS * (uint64_t)machine->loader_waits_ms : 0;
        if (waited_ms || record.run_delay.children_ns)
            job_record(job, rank, record);
    }
}

static void issue_one(struct job *job, int rank)
{
    ALL_REDUCE(job, rank, WORLD, 1000, .stream = GRADIENTS);
    wait_enter(job, rank, API_cudaStreamSynchronize, GRADIENTS);
}

/* An operation behind a kernel that takes so long. */
static void timed_work(struct job *job, int rank, uint64_t busy_ns, uint64_t end_ns)
{
    uint64_t begin_ns = job_now(job), name = intern(job, rank, "gemm");
    ALL_REDUCE(job, rank, WORLD, 1000, .stream = GRADIENTS);
    job_record(job, rank,
               (struct record){.api = API_notice_activity,
                               .activity = {.name = name,
                                            .begin_ns = begin_ns,
                                            .kind = ACTIVITY_COMPUTE,
                                            .count = 1,
                                            .end_ns = begin_ns + busy_ns}});
    job_record(job, rank,
               (struct record){
                   .api = API_notice_kernels,
                   .kernels = {.name = name, .count = 1, .total_ns = busy_ns, .amount = 1024}});
    gpu_timed(job, rank, WORLD, GRADIENTS, begin_ns + busy_ns, end_ns);
}

static void timed_iteration(struct job *job, const struct machine *machine)
{
    uint64_t slower_ns = MS * (uint64_t)machine->slower_ms,
             end_ns = job_now(job) + WORK_MS * MS + slower_ns + TRANSFER_MS * MS;
    for (int rank = 0; rank < RANKS; rank++)
        timed_work(job, rank, WORK_MS * MS + (rank == SLOW ? slower_ns : 0), end_ns);
    job_sleep_ms(job, (uint64_t)(WORK_MS + machine->slower_ms + TRANSFER_MS + 1));
    for (int rank = 0; rank < RANKS; rank++)
        gpu_done(job, rank, WORLD, GRADIENTS);
}

static void iteration(struct job *job, const struct machine *machine, bool is_since, bool is_slow)
{
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != SLOW || !machine->is_late)
            issue_one(job, rank);
    job_sleep_ms(job, WORK_MS);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != SLOW)
            gpu_started(job, rank, WORLD, GRADIENTS);
    job_sleep_ms(job, is_slow ? (uint64_t)machine->slower_ms : 0);
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

/* The warning, or else the notes, and no finding that was withdrawn. Returns the last note's
 * sentence. */
static const char *expect_notes(struct machine machine, const char *expected)
{
    static struct verdict verdict;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    uint64_t read_ns = job_now(job);
    int iterations = machine.iterations ? machine.iterations : ITERATIONS;
    for (int number = 0; number < iterations; number++) {
        bool is_since = number >= machine.since;
        if (machine.is_timed)
            timed_iteration(job, &machine);
        else
            iteration(job, &machine, is_since, !machine.period || number % machine.period == 0);
        for (; job_now(job) - read_ns >= 1000 * MS; read_ns += 1000 * MS)
            read_delays(job, &machine, is_since);
        if ((number + 1) % JUDGED == 0)
            ticks(job, 250); /* the findings come while it runs */
    }
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 0);
    assert_string_equal(verdict.notes, expected);
    assert_string_equal(verdict.resolved, "");
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
    const char *what = expect_notes(late, "DC601:1 ");
    assert_has(what, "rank 1 (host node1) makes the others wait ");
    assert_has(what, ": its host is late, because threads there waited for a processor, ");
    assert_null(strstr(what, "CPU limit"));
    assert_has(expect_notes(limited, "DC604:1 "), "; threads there waited for a processor, ");
    assert_has(expect_notes(throttled, "DC604:1 "), "; the CPU limit of their cgroup was used up");
    throttled.is_late = true;
    assert_has(expect_notes(throttled, "DC601:1 "), "; the CPU limit of their cgroup was used up");
}

/* It waits for its loader, whose workers have none. */
static void a_loader_has_too_few_processors(void **state)
{
    (void)state;
    const struct machine late = {.slower_ms = 60,
                                 .is_late = true,
                                 .loader_waits_ms = 500,
                                 .others_wait_ms = 50,
                                 .iterations = 2 * ITERATIONS};
    assert_has(expect_notes(late, "DC601:1 "), "threads there waited for a processor, ");
}

/* A loader that works ahead holds nothing up; neither does a thread in kernels that are timed. */
static void what_waits_hides_no_slow_gpu(void **state)
{
    (void)state;
    const struct machine slow = {.slower_ms = 60, .loader_waits_ms = 700};
    struct machine begins_late = slow, timed = slow;
    begins_late.iterations = 3 * ITERATIONS;
    begins_late.since = 200;
    timed.is_timed = true;
    timed.waits_ms = 700;
    timed.others_wait_ms = 200;
    assert_null(strstr(expect_notes(slow, "DC604:1 "), "waited for a processor"));
    expect_notes(begins_late, "DC604:1 ");
    expect_notes(timed, "DC604:1 ");
}

static void what_waits_hides_no_pause_or_link(void **state)
{
    (void)state;
    const struct machine pause = {.slower_ms = 200,
                                  .period = 20,
                                  .is_late = true,
                                  .waits_ms = 500,
                                  .iterations = 3 * ITERATIONS},
                         link = {.transfer_ms = 80,
                                 .since = ITERATIONS,
                                 .waits_ms = 500,
                                 .iterations = 2 * ITERATIONS};
    expect_notes(pause, "DC608:1 ");
    expect_notes(link, "DC606:0-3 ");
}

/* Others wait as well, or it was for a moment. */
static void a_busy_host_is_no_finding(void **state)
{
    (void)state;
    expect_notes((struct machine){.slower_ms = 60, .waits_ms = 500, .others_wait_ms = 150}, "");
    expect_notes((struct machine){.slower_ms = 60, .waits_ms = 500}, "");
    expect_notes((struct machine){.slower_ms = 60, .waits_ms = 500, .iterations = 40}, "");
    expect_notes((struct machine){.transfer_ms = 80,
                                  .since = ITERATIONS,
                                  .waits_ms = 500,
                                  .others_wait_ms = 500,
                                  .iterations = 2 * ITERATIONS},
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
        cmocka_unit_test(a_loader_has_too_few_processors),
        cmocka_unit_test(a_busy_host_is_no_finding),
        cmocka_unit_test(waiting_is_not_the_reason),
        cmocka_unit_test(what_waits_hides_no_slow_gpu),
        cmocka_unit_test(what_waits_hides_no_pause_or_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
