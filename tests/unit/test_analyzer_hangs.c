/* Hangs: DC201, DC205, DC206, DC209 and the split of DC109; each faulty job has a correct twin. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD   UINT64_C(0x5ae7000000000001)
#define CONTROL UINT64_C(0xc0de000000000002)

enum { RANKS = 4, GRADIENT_STREAM = 0x70, CONTROL_STREAM = 0x80 };

/* Ranks 0-2 call the barrier (#5 of the control communicator), rank 3 does not and goes on. */
static struct job *partial_barrier(bool faulty)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    job_init(job, CONTROL, 0, RANKS - 1);
    for (int step = 0; step < 5; step++)
        for (int rank = 0; rank < RANKS; rank++) {
            for (int bucket = 0; bucket < 7; bucket++)
                ALL_REDUCE(job, rank, WORLD, 1000 + (uint64_t)bucket, .stream = GRADIENT_STREAM);
            wait_done(job, rank, API_cudaStreamSynchronize, GRADIENT_STREAM);
            ALL_REDUCE(job, rank, CONTROL, 1, .stream = CONTROL_STREAM);
            wait_done(job, rank, API_cudaStreamSynchronize, CONTROL_STREAM);
        }
    for (int rank = 0; rank < RANKS; rank++) {
        range_push(job, rank, "iteration");
        if (rank != 3 || !faulty)
            ALL_REDUCE(job, rank, CONTROL, 1, .stream = CONTROL_STREAM);
        if (rank != 3 && faulty) {
            wait_enter(job, rank, API_cudaStreamSynchronize, CONTROL_STREAM);
            continue;
        }
        for (int bucket = 0; bucket < 7; bucket++)
            ALL_REDUCE(job, rank, WORLD, 1000 + (uint64_t)bucket, .stream = GRADIENT_STREAM);
        if (faulty)
            wait_enter(job, rank, API_cudaStreamSynchronize, GRADIENT_STREAM);
        else
            wait_done(job, rank, API_cudaStreamSynchronize, GRADIENT_STREAM);
    }
    return job;
}

static void partial_barrier_names_the_rank(void **state)
{
    (void)state;
    struct job *job = partial_barrier(true);
    uint64_t last_call = job_now(job);
    ticks(job, 1000);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC201");
    assert_int_equal(found->certainty, CERTAIN);
    assert_int_equal(found->comm, CONTROL);
    assert_int_equal(found->number, 5);
    assert_int_equal(found->sides, 2);
    assert_string_equal(found->ranks[0], "0-2");
    assert_string_equal(found->call[0], "ncclAllReduce(count=1, float32, sum)");
    assert_has(found->where[0], "in cudaStreamSynchronize");
    assert_string_equal(found->ranks[1], "3");
    assert_string_equal(found->call[1], "never called it");
    assert_string_equal(
        found->where[1],
        "in cudaStreamSynchronize, waiting for ncclAllReduce(count=1000, float32, sum) #35 "
        "of comm 5ae7 (4 ranks) that ranks 0-2 have not called");
    assert_true(found->seen_ns - last_call < 700000000); /* of the trace's time, not ours */
    job_free(job);
    job = partial_barrier(false);
    ticks(job, 12000);
    expect(job, NULL);
    job_free(job);
}

/* Without ticks nothing is certain before the end, and at the end all is. */
static void the_end_settles_it(void **state)
{
    (void)state;
    struct job *job = partial_barrier(true);
    expect(job, "DC201");
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_SIGNAL, SIGTERM, false);
    ticks(job, 3000);
    expect(job, "DC201");
    job_free(job);
}

/* A cycle that only seems one because rank 3's next records have not been read yet. */
static void records_that_come_late_are_no_cycle(void **state)
{
    (void)state;
    struct job *job = partial_barrier(true);
    call_leave(job, 3); /* its wait was over at once: rank 3 only came late */
    ALL_REDUCE(job, 3, CONTROL, 1, .stream = CONTROL_STREAM);
    for (int rank = 0; rank < 3; rank++)
        call_leave(job, rank);
    for (int rank = 0; rank < 3; rank++)
        for (int bucket = 0; bucket < 7; bucket++)
            ALL_REDUCE(job, rank, WORLD, 1000 + (uint64_t)bucket, .stream = GRADIENT_STREAM);
    ticks(job, 500);
    expect(job, NULL);
    job_free(job);
}

static void silent_rank_is_possible_then_resolved(void **state)
{
    (void)state;
    struct job *job = job_new(2);
    job_init(job, WORLD, 0, 1);
    ALL_REDUCE(job, 0, WORLD, 8);
    wait_enter(job, 0, API_cudaStreamSynchronize, 0);
    ticks(job, 5000);
    expect(job, NULL);
    ticks(job, 6000);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC201");
    assert_int_equal(found->certainty, POSSIBLE);
    assert_string_equal(found->ranks[1], "1");
    assert_string_equal(found->where[1], "in no call of NCCL or CUDA");
    ALL_REDUCE(job, 1, WORLD, 8);
    call_leave(job, 0);
    ticks(job, 500);
    expect(job, NULL);
    job_free(job);
}

/* The first to call is in no wait: the side shows a rank that is in one, with its own call. */
static void who_waits_is_shown_with_its_call(void **state)
{
    (void)state;
    struct job *job = job_new(3);
    job_init(job, WORLD, 0, 2);
    ALL_REDUCE(job, 1, WORLD, 8);
    ALL_REDUCE(job, 0, WORLD, 8);
    wait_enter(job, 0, API_cudaStreamSynchronize, 0);
    ticks(job, 11000);
    const struct found *found = expect(job, "DC201");
    assert_string_equal(found->ranks[0], "0-1");
    assert_string_equal(found->where[0], "in cudaStreamSynchronize");
    assert_int_equal(found->stack[0], 0x1000 + API_ncclAllReduce);
    job_free(job);
}

/* A rank that makes records is late, not lost. */
static void straggler_is_none(void **state)
{
    (void)state;
    struct job *job = job_new(2);
    job_init(job, WORLD, 0, 1);
    ALL_REDUCE(job, 0, WORLD, 8);
    wait_enter(job, 0, API_cudaStreamSynchronize, 0);
    for (int i = 0; i < 10; i++) {
        ticks(job, 3000);
        range_push(job, 1, "still computing");
    }
    expect(job, NULL);
    job_free(job);
}

/* The wait goes through an event and another stream. */
static void waits_follow_events(void **state)
{
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        struct job *job = job_new(2);
        job_init(job, WORLD, 0, 1);
        for (int rank = 0; rank < 2; rank++) {
            stream_create(job, rank, 0x10, true);
            stream_create(job, rank, 0x20, true);
            ALL_REDUCE(job, rank, WORLD, 8, .stream = 0x10);
            wait_done(job, rank, API_cudaStreamSynchronize, 0x10);
        }
        ALL_REDUCE(job, 0, WORLD, 8, .stream = 0x10);
        event_record(job, 0, 0xe0, 0x10);
        event_wait(job, 0, 0xe0, 0x20);
        event_record(job, 0, 0xe1, faulty ? 0x20 : 0x30);
        wait_enter(job, 0, API_cudaEventSynchronize, 0xe1);
        end(job, 1, END_EXIT, 1, false);
        ticks(job, 2000);
        if (faulty) {
            struct verdict verdict;
            assert_has(expect_in(job, &verdict, "DC205")->where[0], "in cudaEventSynchronize");
        }
        job_free(job);
    }
}

static void rank_that_never_comes(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) { /* never; after all; exits before; is stuck elsewhere */
        struct job *job = job_new(3);
        if (how == 3)
            job_init(job, CONTROL, 0, 2);
        init_enter(job, 0, WORLD, 3, 0, 1);
        init_enter(job, 1, WORLD, 3, 1, 2);
        if (how == 2)
            end(job, 2, END_EXIT, 1, false);
        if (how == 3) {
            ALL_REDUCE(job, 2, CONTROL, 1);
            wait_enter(job, 2, API_cudaStreamSynchronize, 0);
        }
        ticks(job, how < 2 ? 12000 : 2000);
        struct verdict verdict;
        if (how == 1) {
            init_enter(job, 2, WORLD, 3, 2, 3);
            for (int rank = 0; rank < 3; rank++)
                init_leave(job, rank, WORLD, 3, rank, 0);
            ticks(job, 500);
            expect(job, NULL);
        } else if (how == 3) {
            const struct found *found =
                expect_in(job, &verdict, "DC209"); /* of two waits, the one for fewer */
            assert_int_equal(found->certainty, CERTAIN);
            assert_has(found->where[1], "waiting for ncclAllReduce");
        } else {
            const struct found *found = expect_in(job, &verdict, "DC209");
            assert_int_equal(found->certainty, how == 2 ? CERTAIN : POSSIBLE);
            assert_string_equal(found->ranks[0], "0-1");
            assert_string_equal(found->ranks[1], "2");
        }
        job_free(job);
    }
}

/* Of a part of the job nobody knows which rank has not come: it is not named. Several such set-ups
 * are one finding, also when the ranks end one after the other. */
static void setups_that_lack_each_other(void **state)
{
    (void)state;
    for (int count = 1; count <= 3; count++) {
        struct job *job = job_new(4);
        for (int rank = 0; rank < count; rank++)
            init_enter(job, rank, WORLD + (uint64_t)rank, 2, 0, 1 + (uint64_t)rank);
        ticks(job, 12000);
        for (int rank = 0; count > 1 && rank < count; rank++) {
            end(job, rank, END_SIGNAL, SIGKILL, false);
            ticks(job, 12000);
        }
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, "DC209");
        assert_int_equal(verdict.count, 1);
        assert_int_equal(found->sides, count);
        assert_int_equal(found->certainty, POSSIBLE);
        assert_string_equal(found->ranks[count - 1], count == 1 ? "0" : count == 2 ? "1" : "2");
        assert_has(found->what, count == 1 ? "1 of its 2 ranks has not arrived"
                                           : "each of which lacks others of them: rank 0 in that "
                                             "of ");
        assert_has(found->todo, "Create communicators in one order on all ranks");
        job_free(job);
    }
}

/* The calls return at once, and set-up goes on in the background: nobody is in a call that waits.
 */
static void nonblocking_rank_never_comes(void **state)
{
    (void)state;
    enum { IN_PROGRESS = 7 };
    for (int how = 0; how < 3; how++) { /* never; after all; exits before */
        struct job *job = job_new(3);
        for (int rank = 0; rank < 2; rank++) {
            init_enter(job, rank, WORLD, 3, rank, 1 + (uint64_t)rank);
            init_leave(job, rank, WORLD, 3, rank, IN_PROGRESS);
        }
        if (how == 2)
            end(job, 2, END_EXIT, 1, false);
        ticks(job, how < 2 ? 12000 : 2000);
        struct verdict verdict;
        if (how == 1) {
            init_enter(job, 2, WORLD, 3, 2, 3);
            for (int rank = 0; rank < 3; rank++)
                init_leave(job, rank, WORLD, 3, rank, 0);
            ticks(job, 500);
            expect(job, NULL);
        } else {
            const struct found *found = expect_in(job, &verdict, "DC209");
            assert_int_equal(found->certainty, how == 2 ? CERTAIN : POSSIBLE);
            assert_string_equal(found->ranks[0], "0-1");
            assert_string_equal(found->ranks[1], "2");
        }
        job_free(job);
    }
}

/* ncclCommDestroy waits for what was issued. */
static void destroy_waits_for_operations(void **state)
{
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        struct job *job = job_new(2);
        job_init(job, WORLD, 0, 1);
        job_init(job, CONTROL, 0, 1);
        for (int rank = 0; rank < 2; rank++) {
            ALL_REDUCE(job, rank, CONTROL, 4, .stream = 0x10);
            wait_done(job, rank, API_cudaStreamSynchronize, 0x10);
        }
        ALL_REDUCE(job, 0, WORLD, 8, .stream = 0x10);
        if (!faulty)
            ALL_REDUCE(job, 1, WORLD, 8, .stream = 0x10);
        comm_call_enter(job, 0, API_ncclCommDestroy, WORLD);
        ALL_REDUCE(job, 1, CONTROL, 4, .stream = 0x20);
        wait_enter(job, 1, API_cudaStreamSynchronize, 0x20);
        if (!faulty) {
            call_leave(job, 0);
            ALL_REDUCE(job, 0, CONTROL, 4, .stream = 0x20);
            call_leave(job, 1);
            comm_call_enter(job, 1, API_ncclCommDestroy, WORLD);
            call_leave(job, 1);
        }
        ticks(job, 1000);
        struct verdict verdict;
        job_analyze(job, 0, &verdict);
        assert_int_equal(verdict.count, faulty);
        if (faulty)
            assert_int_equal(verdict.found[0].certainty, CERTAIN);
        job_free(job);
    }
}

static void split_that_leaves_someone_waiting(void **state)
{
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        struct job *job = job_new(RANKS);
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS; rank++)
            ALL_REDUCE(job, rank, WORLD, 1);
        for (int rank = 0; rank < RANKS - faulty; rank++)
            comm_call_enter(job, rank, API_ncclCommSplit, WORLD);
        if (faulty) {
            ALL_REDUCE(job, 3, WORLD, 1);
            wait_enter(job, 3, API_cudaStreamSynchronize, 0);
        } else {
            for (int rank = 0; rank < RANKS; rank++)
                call_leave(job, rank);
        }
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, faulty ? "DC109" : NULL);
        if (faulty) {
            assert_string_equal(found->ranks[1], "3");
            assert_string_equal(found->call[0], "ncclCommSplit");
        }
        job_free(job);
    }
}

/* A receive whose send never comes because the sender waits for the receiver. */
/* A rank that is late to a split is possibly missing, until it comes: what hangs afterwards is
 * another fault. */
static void a_split_that_was_late_explains_nothing_later(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS - 1; rank++)
        comm_call_enter(job, rank, API_ncclCommSplit, WORLD);
    ticks(job, 11000);
    struct verdict verdict;
    assert_int_equal(expect_in(job, &verdict, "DC109")->certainty, POSSIBLE);
    comm_call_enter(job, RANKS - 1, API_ncclCommSplit, WORLD);
    for (int rank = 0; rank < RANKS; rank++)
        call_leave(job, rank);
    ticks(job, 500);
    expect(job, NULL);
    for (int rank = 0; rank < RANKS - 1; rank++) {
        ALL_REDUCE(job, rank, WORLD, 1);
        wait_enter(job, rank, API_cudaStreamSynchronize, 0);
    }
    ticks(job, 11000);
    assert_string_equal(expect_in(job, &verdict, "DC201")->ranks[1], "3");
    job_free(job);
}

static void receive_without_send(void **state)
{
    (void)state;
    struct job *job = job_new(2);
    job_init(job, WORLD, 0, 1);
    issue(job, 0, (struct call){.api = API_ncclRecv, .comm = WORLD, .count = 4, .root = 1});
    wait_enter(job, 0, API_cudaStreamSynchronize, 0);
    ALL_REDUCE(job, 1, WORLD, 1);
    wait_enter(job, 1, API_cudaStreamSynchronize, 0);
    ticks(job, 1000);
    expect(job, "DC201");
    job_free(job);
}

/* What a mismatch makes hang is not reported again. */
static void consequences_keep_quiet(void **state)
{
    (void)state;
    struct job *job = job_new(2);
    job_init(job, WORLD, 0, 1);
    ALL_REDUCE(job, 0, WORLD, 8);
    ALL_REDUCE(job, 1, WORLD, 16);
    wait_enter(job, 0, API_cudaStreamSynchronize, 0);
    ticks(job, 12000);
    end(job, 1, END_EXIT, 1, false);
    ticks(job, 2000);
    expect(job, "DC102");
    job_free(job);
}

/* A communicator has a size in sentences, or its ranks if they do not begin with 0. */
static void communicators_have_a_size(void **state)
{
    (void)state;
    static const struct {
        int first, missing;
        const char *what;
    } rows[] = {
        {0, 3,
         "ranks 0-2 wait in ncclAllReduce(count=1, float32, sum) #1 of comm 5ae7 (4 ranks); "},
        {1, 2, "wait in ncclAllReduce(count=1, float32, sum) #1 of comm 5ae7 of ranks 1-3; "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job *job = job_new(RANKS);
        job_init(job, WORLD, rows[i].first, RANKS - 1);
        for (int call = 0; call < 2; call++)
            for (int rank = rows[i].first; rank < RANKS; rank++)
                if (call == 0 || rank != rows[i].missing) {
                    ALL_REDUCE(job, rank, WORLD, 1, .stream = GRADIENT_STREAM);
                    (call ? wait_enter : wait_done)(job, rank, API_cudaStreamSynchronize,
                                                    GRADIENT_STREAM);
                }
        ticks(job, 12000);
        struct verdict verdict;
        assert_has(expect_in(job, &verdict, "DC201")->what, rows[i].what);
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partial_barrier_names_the_rank),
        cmocka_unit_test(the_end_settles_it),
        cmocka_unit_test(records_that_come_late_are_no_cycle),
        cmocka_unit_test(silent_rank_is_possible_then_resolved),
        cmocka_unit_test(who_waits_is_shown_with_its_call),
        cmocka_unit_test(straggler_is_none),
        cmocka_unit_test(waits_follow_events),
        cmocka_unit_test(rank_that_never_comes),
        cmocka_unit_test(setups_that_lack_each_other),
        cmocka_unit_test(nonblocking_rank_never_comes),
        cmocka_unit_test(destroy_waits_for_operations),
        cmocka_unit_test(split_that_leaves_someone_waiting),
        cmocka_unit_test(a_split_that_was_late_explains_nothing_later),
        cmocka_unit_test(receive_without_send),
        cmocka_unit_test(consequences_keep_quiet),
        cmocka_unit_test(communicators_have_a_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
