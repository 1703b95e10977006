/* A job on several hosts and its hub: what the hosts send of a job gives the finding that one
 * analysis of all its records gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hub_job.h"

#define CALL_STACK UINT64_C(0x5757)

enum { INNER_FRAME = 0x2020, OUTER_FRAME = 0x1010 };

static void a_correct_job_has_no_finding(void **state)
{
    (void)state;
    struct job *job = hub_job_new();
    for (int i = 0; i < 4; i++) {
        hub_job_operations(job, COMM, 100);
        ticks(job, 500);
    }
    hub_job_end(job);
    ticks(job, 1000);
    hub_job_expect(job, NULL);
    job_free(job);
}

static void one_rank_is_missing(void **state)
{
    (void)state;
    for (int before = 0; before <= 9000; before = before ? before * 30 : 10) {
        struct job *job = hub_job_new();
        hub_job_operations(job, COMM, before);
        for (int rank = 0; rank < HUB_RANKS; rank++)
            if (rank != 5)
                ALL_REDUCE(job, rank, COMM, 4096, .stream = HUB_STREAM);
        for (int rank = 0; rank < HUB_RANKS; rank++)
            wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
        ticks(job, 12000);
        hub_job_expect(job, "DC201");
        job_free(job);
    }
}

static void ranks_of_two_hosts_wait_in_a_cycle(void **state)
{
    (void)state;
    struct job *job = hub_job_new();
    job_init(job, SECOND, 0, HUB_RANKS - 1);
    hub_job_operations(job, COMM, 20);
    hub_job_operations(job, SECOND, 20);
    for (int rank = 0; rank < HUB_RANKS; rank++) {
        bool other = rank >= HUB_RANKS / 2;
        ALL_REDUCE(job, rank, other ? SECOND : COMM, 7, .stream = HUB_STREAM);
        ALL_REDUCE(job, rank, other ? COMM : SECOND, 7, .stream = HUB_STREAM);
        wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
    }
    ticks(job, 1500);
    hub_job_expect(job, "DC202");
    job_free(job);
}

/* It destroys the communicator whose AllReduce stands behind it; all ranks wait for that one. */
static void a_host_function_does_not_return(void **state)
{
    (void)state;
    struct job *job = hub_job_new();
    struct record launch = {.api = API_cudaLaunchHostFunc, .stream = HUB_STREAM};
    struct record begins = {.api = API_notice_host_function, .stream = HUB_STREAM};
    launch.launch.known = LAUNCH_REPORTS_RUN;
    hub_job_operations(job, COMM, 20);
    for (int rank = 0; rank < HUB_RANKS; rank++) {
        if (rank == 5)
            begins.leave.enter = job_record(job, rank, launch);
        ALL_REDUCE(job, rank, COMM, 100, .stream = HUB_STREAM);
        wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
    }
    job_thread(job, 5, 700);
    job_record(job, 5, begins);
    comm_call_enter(job, 5, API_ncclCommDestroy, COMM);
    ticks(job, 1500);
    hub_job_expect(job, "DC208");
    job_free(job);
}

/* One rank skipped a barrier, and waits elsewhere for those in it, while some have not come to it
 * yet: until they have, nothing says which ranks went astray. Where they take longer than a rank
 * may be silent, what was reported meanwhile is taken back when they come. */
static void some_are_late_for_a_barrier_that_one_skips(void **state)
{
    (void)state;
    for (int late_ms = 900; late_ms <= 14400; late_ms *= 4) {
        struct job *job = hub_job_new();
        job_init(job, SECOND, 0, HUB_RANKS - 1);
        ALL_REDUCE(job, 7, SECOND, 7, .stream = HUB_STREAM);
        wait_enter(job, 7, API_cudaStreamSynchronize, HUB_STREAM);
        for (int rank = 0; rank < 7; rank++) {
            ALL_REDUCE(job, rank, COMM, 1, .stream = HUB_STREAM);
            wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
            if (rank == 1)
                ticks(job, late_ms);
        }
        ticks(job, 1500);
        hub_job_expect(job, "DC201");
        job_free(job);
    }
}

static void send_stack(struct job *job)
{
    struct record record = {.api = API_notice_stack, .device = RECORD_NO_DEVICE};
    record.frames.id = CALL_STACK;
    record.frames.count = 2;
    record.frames.address[0] = INNER_FRAME;
    record.frames.address[1] = OUTER_FRAME;
    for (int rank = 0; rank < HUB_RANKS; rank++)
        job_record(job, rank, record);
}

/* The shim sends a stack again when it no longer knows that it has. What names it is where it was,
 * before the operations that the ranks wait in. */
static void a_stack_comes_again(void **state)
{
    (void)state;
    struct job *job = hub_job_new();
    const struct record wait = {.api = API_cudaStreamSynchronize,
                                .phase = RECORD_ENTER,
                                .stream = HUB_STREAM,
                                .stack = CALL_STACK};
    job_init(job, SECOND, 0, HUB_RANKS - 1);
    send_stack(job);
    for (int rank = 0; rank < HUB_RANKS; rank++) {
        bool other = rank >= HUB_RANKS / 2;
        job_record(job, rank, wait);
        call_leave(job, rank);
        ALL_REDUCE(job, rank, other ? SECOND : COMM, 7, .stream = HUB_STREAM);
        ALL_REDUCE(job, rank, other ? COMM : SECOND, 7, .stream = HUB_STREAM);
    }
    send_stack(job);
    for (int rank = 0; rank < HUB_RANKS; rank++)
        job_record(job, rank, wait);
    ticks(job, 1500);
    hub_job_expect(job, "DC202");
    job_free(job);
}

static void counts_differ_in_a_hang(void **state)
{
    (void)state;
    struct job *job = hub_job_new();
    hub_job_operations(job, COMM, 30);
    for (int rank = 0; rank < HUB_RANKS; rank++) {
        ALL_REDUCE(job, rank, COMM, rank == 6 ? 64 : 128, .stream = HUB_STREAM);
        wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
    }
    ticks(job, 1500);
    hub_job_expect(job, "DC102");
    job_free(job);
}

/* Nobody waits: the hashes show it. */
static void counts_differ_and_the_job_goes_on(void **state)
{
    (void)state;
    struct job *job = hub_job_new();
    hub_job_operations(job, COMM, 30);
    for (int rank = 0; rank < HUB_RANKS; rank++) {
        ALL_REDUCE(job, rank, COMM, rank == 6 ? 64 : 128, .stream = HUB_STREAM);
        gpu_done(job, rank, COMM, HUB_STREAM);
    }
    hub_job_operations(job, COMM, 400);
    hub_job_end(job);
    ticks(job, 1500);
    hub_job_expect(job, "DC102");
    job_free(job);
}

/* What the hub judges of a process whose ring was full is possible only, as on its host: also where
 * the notice of it is further back than what the host sends. */
static void records_were_lost(void **state)
{
    (void)state;
    for (int count = 0; count <= 3; count += 3)
        for (int later = 0; later <= 600; later += 600) {
            struct record lost = {.api = API_notice_lost, .device = RECORD_NO_DEVICE};
            struct job *job = hub_job_new();
            struct test_hub test;
            lost.lost.control = (uint64_t)count;
            job_record(job, 7, lost);
            job_init(job, SECOND, 0, HUB_RANKS - 1);
            hub_job_operations(job, COMM, later);
            for (int rank = 0; rank < HUB_RANKS; rank++) {
                ALL_REDUCE(job, rank, rank == 7 ? SECOND : COMM, 7, .stream = HUB_STREAM);
                wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
            }
            ticks(job, 1500);
            hub_job_run(job, &test, 2, -1);
            assert_int_equal(hub_job_count_news(&test), 1);
            assert_string_equal(hub_job_first_news(&test)->code, "DC201");
            assert_int_equal(hub_job_first_news(&test)->certainty, count ? POSSIBLE : CERTAIN);
            job_free(job);
        }
}

static void a_rank_is_killed(void **state)
{
    (void)state;
    struct job *job = hub_job_new();
    hub_job_operations(job, COMM, 5);
    for (int rank = 0; rank < HUB_RANKS; rank++)
        if (rank != 2) {
            ALL_REDUCE(job, rank, COMM, 128, .stream = HUB_STREAM);
            wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
        }
    ticks(job, 250);
    end(job, 2, END_SIGNAL, 11, false);
    ticks(job, 2500);
    hub_job_expect(job, "DC205");
    job_free(job);
}

/* NCCL refuses a rank's call, and it exits: that others wait for it is a consequence. */
static void a_call_is_refused(void **state)
{
    (void)state;
    enum { INVALID_ARGUMENT = 4 };
    struct job *job = hub_job_new();
    struct record left = {
        .api = API_ncclCommSplit, .phase = RECORD_LEAVE, .result = INVALID_ARGUMENT};
    hub_job_operations(job, COMM, 5);
    for (int rank = 0; rank < HUB_RANKS; rank++)
        comm_call_enter(job, rank, API_ncclCommSplit, COMM);
    left.leave.comm = COMM;
    job_record(job, 2, left);
    ticks(job, 250);
    end(job, 2, END_EXIT, 1, false);
    ticks(job, 2500);
    hub_job_expect(job, "DC111");
    job_free(job);
}

/* Ranks wait in ncclCommInitRank for one that does not come. */
static void a_rank_does_not_come_to_the_set_up(void **state)
{
    (void)state;
    struct job *job = job_new(HUB_RANKS);
    job_init(job, SECOND, 0, HUB_RANKS - 1);
    for (int rank = 0; rank < HUB_RANKS; rank++)
        if (rank != 7)
            init_enter(job, rank, COMM, HUB_RANKS, rank, 0);
        else
            wait_enter(job, rank, API_cudaStreamSynchronize, 0);
    ticks(job, 12000);
    struct verdict verdict;
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 1);
    hub_job_expect(job, verdict.found[0].code);
    job_free(job);
}

/* The others' calls have returned, and what these began goes on: they query. A rank that waits for
 * nothing is missing, and some have made many calls since. */
static void some_only_query(void **state)
{
    (void)state;
    enum { IN_PROGRESS = 7, LATER_CALLS = 7000 };
    for (int later = 0; later <= LATER_CALLS; later += LATER_CALLS) {
        struct job *job = hub_job_new();
        hub_job_operations(job, COMM, 5);
        for (int rank = 0; rank < HUB_RANKS - 1; rank++) {
            init_enter(job, rank, SECOND, HUB_RANKS, rank, 0);
            init_leave(job, rank, SECOND, HUB_RANKS, rank, IN_PROGRESS);
        }
        for (int i = 0; i < later; i++)
            wait_done(job, i % (HUB_RANKS - 1), API_cudaStreamSynchronize, HUB_STREAM);
        ticks(job, 12000);
        hub_job_expect(job, "DC209");
        struct test_hub test;
        hub_job_run(job, &test, 4, -1);
        assert_int_equal(test.live, 1);
        job_free(job);
    }
}

/* A message that nobody sends, and no thread waits for. */
static void a_message_is_only_queried(void **state)
{
    (void)state;
    struct job *job = hub_job_new();
    hub_job_operations(job, COMM, 5);
    issue(job, 1,
          (struct call){
              .api = API_ncclRecv, .comm = COMM, .count = 4, .root = 6, .stream = HUB_STREAM});
    ticks(job, 12000);
    struct verdict verdict;
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 1);
    hub_job_expect(job, verdict.found[0].code);
    struct test_hub test;
    hub_job_run(job, &test, 4, -1);
    assert_int_equal(test.live, 1);
    job_free(job);
}

/* One has made no NCCL call yet; the process of another rank of its host says where it is. */
static void a_rank_has_made_no_call(void **state)
{
    (void)state;
    struct job *job = job_new(HUB_RANKS);
    struct record dormant = {.api = API_notice_dormant};
    for (int rank = 0; rank < HUB_RANKS - 1; rank++)
        init_enter(job, rank, COMM, HUB_RANKS, rank, 0);
    dormant.range.id = HUB_RANKS - 1;
    dormant.range.domain = 4711;
    dormant.range.text = intern(job, HUB_RANKS - 2, "load() at train.py:12");
    job_record(job, HUB_RANKS - 2, dormant);
    ticks(job, 12000);
    struct verdict verdict;
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 1);
    const struct found *found = &verdict.found[0];
    assert_non_null(strstr(found->where[found->sides - 1], "load() at train.py:12"));
    hub_job_expect(job, verdict.found[0].code);
    job_free(job);
}

/* No launcher says which process is which rank: as many as are missing, without a call, may be
 * those that are missing; of more it is not known. */
static void a_process_of_no_rank_has_made_no_call(void **state)
{
    (void)state;
    enum { MISSING_MAX = 2, PROCESSES_MAX = 3 };
    for (int processes = 1; processes <= PROCESSES_MAX; processes++) {
        int missing = processes < MISSING_MAX ? 1 : MISSING_MAX;
        struct job *job = job_new(HUB_RANKS);
        struct record dormant = {.api = API_notice_dormant};
        struct verdict verdict;
        for (int rank = 0; rank < HUB_RANKS - missing; rank++)
            init_enter(job, rank, COMM, HUB_RANKS, rank, 0);
        dormant.range.id = UINT64_MAX;
        dormant.range.text = intern(job, 0, "load() at train.py:12");
        for (int i = 0; i < processes; i++) {
            dormant.range.domain = 4711 + (uint64_t)i;
            job_record(job, 0, dormant);
        }
        ticks(job, 12000);
        job_analyze(job, 0, &verdict);
        assert_int_equal(verdict.count, 1);
        const struct found *found = &verdict.found[0];
        const char *where = found->where[found->sides - 1];
        assert_int_equal(strstr(where, "it may be process 4711") != NULL, processes == 1);
        assert_int_equal(strstr(where, "they may be these processes, which have made none yet: "
                                       "4711 (load() at train.py:12), 4712 (load() at "
                                       "train.py:12)") != NULL,
                         processes == 2);
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_correct_job_has_no_finding),
        cmocka_unit_test(one_rank_is_missing),
        cmocka_unit_test(ranks_of_two_hosts_wait_in_a_cycle),
        cmocka_unit_test(a_host_function_does_not_return),
        cmocka_unit_test(some_are_late_for_a_barrier_that_one_skips),
        cmocka_unit_test(a_stack_comes_again),
        cmocka_unit_test(counts_differ_in_a_hang),
        cmocka_unit_test(counts_differ_and_the_job_goes_on),
        cmocka_unit_test(records_were_lost),
        cmocka_unit_test(a_rank_is_killed),
        cmocka_unit_test(a_rank_does_not_come_to_the_set_up),
        cmocka_unit_test(a_call_is_refused),
        cmocka_unit_test(some_only_query),
        cmocka_unit_test(a_message_is_only_queried),
        cmocka_unit_test(a_rank_has_made_no_call),
        cmocka_unit_test(a_process_of_no_rank_has_made_no_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
