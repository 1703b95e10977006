/* Circles of waits between communicators: DC202; each faulty job beside a correct one that looks
 * like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cycle_job.h"

#define THIRD UINT64_C(0xcccc000000000003)

/* Three of four ranks agree: DC201, whose advice is that of the cycle as well. */
static void one_rank_crosses(void **state)
{
    (void)state;
    struct job *job = cycle_job_new(RANKS);
    for (int rank = 0; rank < RANKS; rank++)
        cycle_job_issue(job, rank, rank == 2 ? SECOND : FIRST, rank == 2 ? FIRST : SECOND, BY_HOST,
                        true);
    ticks(job, 1000);
    const struct found *found = expect(job, "DC201");
    assert_string_equal(found->ranks[1], "2");
    assert_has(found->todo, "all communicators in one order");
    job_free(job);
}

/* A loop over cudaStreamQuery may give up: possible. One of a thread that does not use NCCL, as a
 * watchdog's, says nothing of where its rank is. */
static void query_loops(void **state)
{
    (void)state;
    for (int watchdog = 0; watchdog < 2; watchdog++) {
        struct job *job = cycle_job_new(2);
        for (int rank = 0; rank < 2; rank++) {
            if (!watchdog || rank == 0)
                ALL_REDUCE(job, rank, rank ? SECOND : FIRST, 100, .stream = ONE);
            if (watchdog && rank == 1)
                job_thread(job, rank, 900);
            wait_enter(job, rank, API_cudaStreamQuery_loop, ONE);
        }
        ticks(job, 12000);
        const struct found *found = expect(job, watchdog ? "DC201" : "DC202");
        assert_int_equal(found->certainty, POSSIBLE);
        assert_has(found->where[watchdog ? 1 : 0],
                   watchdog ? "in no call of NCCL or CUDA" : "a loop over cudaStreamQuery");
        job_free(job);
    }
}

static void crossed_communicators(void **state)
{
    (void)state;
    static const enum order orders[] = {ON_ONE_STREAM, BY_EVENT, BY_DEFAULT_STREAM};
    for (size_t i = 0; i < 2 * 2 * 3; i++) {
        bool progress = i % 2, waits = i / 2 % 2;
        struct job *job = cycle_job_new(RANKS);
        for (int rank = 0; rank < RANKS; rank++) {
            cycle_job_issue(job, rank, rank == 2 ? SECOND : FIRST, rank == 2 ? FIRST : SECOND,
                            orders[i / 4], progress);
            if (waits)
                wait_enter(job, rank, API_cudaDeviceSynchronize, 0);
        }
        uint64_t last_call = job_now(job);
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, "DC202");
        assert_int_equal(found->certainty, CERTAIN);
        assert_int_equal(found->sides, 2);
        assert_string_equal(found->ranks[0], "0-1,3");
        assert_string_equal(found->ranks[1], "2");
        assert_string_equal(found->call[0], "ncclAllReduce(count=100, float32, sum)");
        assert_has(found->where[0], "waits for rank 2: its call is queued behind ncclAllReduce");
        assert_has(found->where[1], "waits for rank 0: its call is queued behind ncclAllReduce");
        assert_true(found->seen_ns - last_call < 700000000);
        job_free(job);
    }
}

/* In one order, or with nothing between the two: no hang that could be proven. */
static void right_orders_are_none(void **state)
{
    (void)state;
    static const enum order orders[] = {ON_ONE_STREAM, BY_EVENT, BY_DEFAULT_STREAM, NOT_AT_ALL};
    for (int i = 0; i < 2 * 4; i++) {
        struct job *job = cycle_job_new(RANKS);
        for (int rank = 0; rank < RANKS; rank++) {
            cycle_job_issue(job, rank, FIRST, SECOND, orders[i / 2], i % 2);
            wait_enter(job, rank, API_cudaDeviceSynchronize, 0);
        }
        ticks(job, 1000);
        expect(job, NULL);
        job_free(job);
    }
}

/* A hub is told the last progress of each slot again, also with how long before nothing ran: the
 * operation that is queued next has not started for all that. */
static void progress_that_is_told_again(void **state)
{
    (void)state;
    struct job *job = cycle_job_new(RANKS);
    struct record told = {.api = API_notice_progress};
    told.progress.slot = 1; /* of the first call that a rank makes */
    told.progress.started = told.progress.done = 1;
    told.progress.idle_us = 1000;
    for (int rank = 0; rank < RANKS; rank++) {
        ALL_REDUCE(job, rank, FIRST, 100, .stream = ONE);
        job_record(job, rank, told);
        cycle_job_issue(job, rank, rank == 2 ? SECOND : FIRST, rank == 2 ? FIRST : SECOND,
                        ON_ONE_STREAM, true);
        wait_enter(job, rank, API_cudaDeviceSynchronize, 0);
        job_record(job, rank, told);
    }
    ticks(job, 1000);
    struct verdict verdict;
    assert_int_equal(expect_in(job, &verdict, "DC202")->certainty, CERTAIN);
    job_free(job);
}

/* Two ranks, each waits on the host for its first. */
static void crossed_with_host_waits(void **state)
{
    (void)state;
    struct job *job = cycle_job_new(2);
    cycle_job_issue(job, 0, FIRST, SECOND, BY_HOST, true);
    cycle_job_issue(job, 1, SECOND, FIRST, BY_HOST, true);
    ticks(job, 1000);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC202");
    assert_has(
        found->where[0],
        "waits for rank 1: it has not called it, it is in cudaStreamSynchronize and waits in "
        "ncclAllReduce(count=200, float32, sum) #0 of comm bbbb (2 ranks)");
    job_free(job);
}

static void name_comm(struct job *job, uint64_t comm, const char *name)
{
    struct record record = {.api = API_notice_comm_name};
    record.range.text = intern(job, 0, name);
    record.range.id = comm;
    job_record(job, 0, record);
}

/* The program's name of a communicator is in the sentence, with its id where two have it. */
static void named_communicators(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *called;
    } cases[] = {
        {"dp", NULL, "#0 of comm dp (2 ranks)"},
        {"dp", "tp", "#0 of comm dp (2 ranks)"},
        {"dp", "dp", "#0 of comm dp aaaa (2 ranks)"},
        {"", NULL, "#0 of comm aaaa (2 ranks)"},
        {"a\033[31m\n<b>\"", NULL, "#0 of comm a_[31m__b__ (2 ranks)"},
        {"INTER_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP_WITH", NULL,
         "#0 of comm INTER_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP_WITH (2 ranks)"},
        {"INTER_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP_WITH_", NULL,
         "#0 of comm INTER_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP_W... (2 ranks)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = cycle_job_new(2);
        name_comm(job, FIRST, cases[i].first);
        if (cases[i].second)
            name_comm(job, SECOND, cases[i].second);
        cycle_job_issue(job, 0, FIRST, SECOND, BY_HOST, true);
        cycle_job_issue(job, 1, SECOND, FIRST, BY_HOST, true);
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, "DC202");
        assert_has(found->where[1], cases[i].called);
        job_free(job);
    }
}

/* Of two ranks one waits in an operation of one element and the other one in a buffer's: the
 * barrier was skipped. Two barriers, or two buffers, are two communicators in different orders. */
static void skipped_barrier_of_two_ranks(void **state)
{
    (void)state;
    static const struct {
        uint64_t count[2];
        const char *code;
    } cases[] = {{{1, 200}, "DC201"}, {{200, 1}, "DC201"}, {{1, 1}, "DC202"}, {{2, 200}, "DC202"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = cycle_job_new(2);
        for (int rank = 0; rank < 2; rank++) {
            ALL_REDUCE(job, rank, rank ? SECOND : FIRST, cases[i].count[rank], .stream = ONE);
            wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
        }
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, cases[i].code);
        assert_int_equal(found->certainty, CERTAIN);
        assert_has(found->call[0], cases[i].count[0] == 200 && i < 2 ? "count=1," : "count=");
        job_free(job);
    }
}

/* A communicator's operations run one after the other, whatever their streams. */
static void one_communicator_on_two_streams(void **state)
{
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        struct job *job = cycle_job_new(2);
        for (int rank = 0; rank < 2; rank++) {
            ALL_REDUCE(job, rank, FIRST, 1, .stream = ONE);
            ALL_REDUCE(job, rank, FIRST, 2, .stream = TWO);
        }
        issue(job, 0,
              (struct call){
                  .api = API_ncclSend, .comm = FIRST, .count = 4, .root = 1, .stream = ONE});
        ALL_REDUCE(job, 0, FIRST, 3, .stream = TWO);
        if (faulty) {
            ALL_REDUCE(job, 1, FIRST, 3, .stream = TWO);
            issue(job, 1,
                  (struct call){
                      .api = API_ncclRecv, .comm = FIRST, .count = 4, .root = 0, .stream = ONE});
        } else {
            issue(job, 1,
                  (struct call){
                      .api = API_ncclRecv, .comm = FIRST, .count = 4, .root = 0, .stream = ONE});
            ALL_REDUCE(job, 1, FIRST, 3, .stream = TWO);
        }
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, faulty ? "DC203" : NULL);
        if (faulty) {
            assert_has(found->what, " on comm ");
            assert_has(found->where[0], "an earlier one of the communicator on another stream");
        }
        job_free(job);
    }
}

/* The rank that did not what the others did is reported as missing, although its peers' next call
 * is queued behind. */
static void missing_rank_with_queued_work(void **state)
{
    (void)state;
    struct job *job = cycle_job_new(RANKS);
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank != 3)
            ALL_REDUCE(job, rank, SECOND, 1, .stream = ONE);
        ALL_REDUCE(job, rank, FIRST, 1000, .stream = ONE);
        wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
    }
    ticks(job, 1000);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC201");
    assert_int_equal(found->comm, SECOND);
    assert_string_equal(found->ranks[1], "3");
    job_free(job);
}

/* A rank that skipped its group's operation is named, not the one that waits for it and has called
 * what all wait in. */
static void skipped_operation_of_a_subgroup(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    job_init(job, FIRST, 0, RANKS - 1);
    job_init(job, SECOND, 2, 3);
    for (int rank = 0; rank < RANKS; rank++) {
        stream_create(job, rank, ONE, true);
        if (rank == 2)
            ALL_REDUCE(job, rank, SECOND, 200, .stream = ONE);
        ALL_REDUCE(job, rank, FIRST, 100, .stream = ONE);
        wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
    }
    ticks(job, 1000);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC201");
    assert_int_equal(found->comm, SECOND);
    assert_string_equal(found->ranks[0], "2");
    assert_string_equal(found->ranks[1], "3");
    job_free(job);
}

/* An aborted communicator holds nothing up. */
static void abort_ends_a_circle(void **state)
{
    (void)state;
    struct job *job = cycle_job_new(2);
    for (int rank = 0; rank < 2; rank++) {
        cycle_job_issue(job, rank, rank ? SECOND : FIRST, rank ? FIRST : SECOND, ON_ONE_STREAM,
                        true);
        comm_call_enter(job, rank, API_ncclCommAbort, FIRST);
        call_leave(job, rank);
        comm_call_enter(job, rank, API_ncclCommAbort, SECOND);
        call_leave(job, rank);
    }
    ticks(job, 1000);
    expect(job, NULL);
    job_free(job);
}

/* One rank gives a communicator up while its job has others; then all do. The job is over it once
 * all work on one that they created after that, and not if a rank ends first. */
static void given_up_by_all(void **state)
{
    (void)state;
    enum { OLD_ONE, NEW_ONE, NEW_ONE_AND_FAILURE, CASES, WATCHDOG = 9 };
    for (int how = 0; how < CASES; how++) {
        struct job *job = job_new(3);
        struct verdict verdict;
        job_init(job, FIRST, 0, 2);
        job_init(job, SECOND, 0, 2);
        for (int rank = 0; rank < 3; rank++) {
            ALL_REDUCE(job, rank, FIRST, 8);
            ALL_REDUCE(job, rank, SECOND, 8);
            wait_done(job, rank, API_cudaStreamSynchronize, 0);
        }
        comm_call_enter(job, 2, API_ncclCommAbort, FIRST);
        call_leave(job, 2);
        for (int rank = 0; rank < 2; rank++) {
            ALL_REDUCE(job, rank, FIRST, 8);
            wait_enter(job, rank, API_cudaStreamSynchronize, 0);
        }
        ticks(job, 12000);
        assert_has(expect(job, "DC205")->call[1], "aborted the communicator");
        for (int rank = 0; rank < 2; rank++) {
            call_leave(job, rank);
            job_thread(job, rank, WATCHDOG);
            comm_call_enter(job, rank, API_ncclCommAbort, FIRST);
            call_leave(job, rank);
        }
        if (how != OLD_ONE)
            job_init(job, THIRD, 0, 2);
        for (int rank = 0; rank < 3 && how != OLD_ONE; rank++)
            ALL_REDUCE(job, rank, THIRD, 8);
        if (how == NEW_ONE_AND_FAILURE)
            end(job, 1, END_EXIT, 1, false);
        ticks(job, 2000);
        expect_in(job, &verdict, how == NEW_ONE ? NULL : "DC205");
        assert_string_equal(verdict.resolved, how == NEW_ONE ? "DC205:2 " : "");
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crossed_communicators),
        cmocka_unit_test(right_orders_are_none),
        cmocka_unit_test(progress_that_is_told_again),
        cmocka_unit_test(crossed_with_host_waits),
        cmocka_unit_test(named_communicators),
        cmocka_unit_test(skipped_barrier_of_two_ranks),
        cmocka_unit_test(skipped_operation_of_a_subgroup),
        cmocka_unit_test(one_communicator_on_two_streams),
        cmocka_unit_test(missing_rank_with_queued_work),
        cmocka_unit_test(one_rank_crosses),
        cmocka_unit_test(query_loops),
        cmocka_unit_test(abort_ends_a_circle),
        cmocka_unit_test(given_up_by_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
