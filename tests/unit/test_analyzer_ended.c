/* Ranks that ended while others wait: DC205 and DC206; each faulty job has a correct twin. */
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

enum { RANKS = 4 };

static struct job *crash(enum end_how how, int value, bool oom)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int step = 0; step < 3; step++)
        for (int rank = 0; rank < RANKS; rank++) {
            ALL_REDUCE(job, rank, WORLD, 16);
            wait_done(job, rank, API_cudaStreamSynchronize, 0);
        }
    end(job, 2, how, value, oom);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != 2) {
            ALL_REDUCE(job, rank, WORLD, 16);
            wait_enter(job, rank, API_cudaStreamSynchronize, 0);
        }
    return job;
}

static void ended_rank_is_named_once(void **state)
{
    (void)state;
    static const struct {
        enum end_how how;
        int value;
        bool oom;
        const char *said;
    } cases[] = {
        {END_EXIT, 1, false, "exited with status 1"},
        {END_SIGNAL, SIGSEGV, false, "was killed by SIGSEGV"},
        {END_SIGNAL, SIGKILL, true, "ran out of memory"},
        {END_SIGNAL, SIGKILL, false, "was killed by SIGKILL"},
        {END_UNKNOWN, 0, false, "how it ended is not known"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = crash(cases[i].how, cases[i].value, cases[i].oom);
        ticks(job, 2000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, "DC205");
        assert_int_equal(found->number, 3);
        assert_string_equal(found->ranks[0], "0-1,3");
        assert_string_equal(found->ranks[1], "2");
        assert_has(found->call[1], cases[i].said);
        for (int rank = 0; rank < RANKS; rank++) /* the launcher ends the gang */
            if (rank != 2)
                end(job, rank, END_SIGNAL, SIGTERM, false);
        ticks(job, 2000);
        expect(job, "DC205");
        job_free(job);
    }
}

/* A rank that was silent for long has ended: what is certain takes the place of what was supposed.
 */
static void end_replaces_what_was_supposed(void **state)
{
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        struct job *job = job_new(2);
        struct verdict verdict;
        job_init(job, WORLD, 0, 1);
        ALL_REDUCE(job, 0, WORLD, 8);
        wait_enter(job, 0, API_cudaStreamSynchronize, 0);
        ticks(job, 11000);
        if (ends)
            end(job, 1, END_EXIT, 1, false);
        ticks(job, 2000);
        const struct found *found = expect_in(job, &verdict, ends ? "DC205" : "DC201");
        assert_int_equal(found->certainty, ends ? CERTAIN : POSSIBLE);
        assert_string_equal(verdict.resolved, ends ? "DC201?:1 " : "");
        job_free(job);
    }
}

/* The launcher was quicker than the first judgement. */
static void gang_ended_at_once_is_one_finding(void **state)
{
    (void)state;
    struct job *job = crash(END_SIGNAL, SIGSEGV, false);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != 2)
            end(job, rank, END_SIGNAL, SIGTERM, false);
    struct verdict verdict;
    assert_string_equal(expect_in(job, &verdict, "DC205")->ranks[1], "2");
    job_free(job);
}

/* mpirun ends the others as soon as one has left, with whatever status: they are no cause, although
 * they were in the operation when they ended. */
static void terminated_after_another_left_is_no_cause(void **state)
{
    (void)state;
    for (int status = 0; status < 2; status++) {
        struct job *job = job_new(RANKS);
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS; rank++) {
            ALL_REDUCE(job, rank, WORLD, 16);
            wait_done(job, rank, API_cudaStreamSynchronize, 0);
            gpu_done(job, rank, WORLD, 0);
        }
        for (int rank = 0; rank < RANKS; rank++)
            if (rank != 2) {
                ALL_REDUCE(job, rank, WORLD, 16);
                wait_enter(job, rank, API_cudaStreamSynchronize, 0);
            }
        end(job, 2, END_EXIT, status, false);
        job_sleep_ms(job, 10);
        for (int rank = 0; rank < RANKS; rank++)
            if (rank != 2)
                end(job, rank, END_SIGNAL, SIGTERM, false);
        ticks(job, 2000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, status ? "DC205" : "DC206");
        assert_string_equal(found->ranks[1], "2");
        assert_has(found->call[1], status ? "exited with status 1" : "exited with status 0");
        job_free(job);
    }
}

/* A rank that ended before its first call left nothing; its launcher terminated those who waited
 * for it. Where they were ended by Ctrl-C, or all had come, there is nothing to report. */
static void ended_before_its_first_call(void **state)
{
    (void)state;
    static const struct {
        int ranks, signal;
        const char *code;
    } cases[] = {{RANKS - 1, SIGTERM, "DC209"}, {RANKS - 1, SIGINT, NULL}, {RANKS, SIGTERM, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = job_new(RANKS);
        for (int rank = 0; rank < cases[i].ranks; rank++)
            init_enter(job, rank, WORLD, RANKS, rank, 1000 + (uint64_t)rank);
        job_sleep_ms(job, 10);
        for (int rank = 0; rank < cases[i].ranks; rank++)
            end(job, rank, END_SIGNAL, cases[i].signal, false);
        ticks(job, 2000);
        if (!cases[i].code) {
            expect(job, NULL);
        } else {
            struct verdict verdict;
            const struct found *found = expect_in(job, &verdict, cases[i].code);
            assert_string_equal(found->ranks[0], "0-2");
            assert_has(found->where[0], "was killed by SIGTERM");
            assert_string_equal(found->ranks[1], "3");
            assert_has(found->what, "rank 3 ended before its first call of NCCL");
        }
        job_free(job);
    }
}

/* A rank whose only record is its end: it is named with that, also if its launcher has terminated
 * those who waited by then, and if it was reported before as one that does not arrive. */
static void ended_before_it_joined(void **state)
{
    (void)state;
    enum { TERMINATED = 1, REPORTED = 2 };
    for (int how = 0; how < 4; how++) {
        struct job *job = job_new(2);
        struct verdict verdict;
        init_enter(job, 0, WORLD, 2, 0, 1000);
        job_record(job, 1, (struct record){.api = API_ncclGroupStart});
        ticks(job, how & REPORTED ? 12000 : 100);
        if (how & REPORTED)
            assert_int_equal(expect_in(job, &verdict, "DC209")->certainty, POSSIBLE);
        end(job, 1, END_EXIT, 1, false);
        job_sleep_ms(job, 10);
        if (how & TERMINATED)
            end(job, 0, END_SIGNAL, SIGTERM, false);
        ticks(job, 2000);
        const struct found *found = expect_in(job, &verdict, "DC209");
        assert_int_equal(found->certainty, CERTAIN);
        assert_string_equal(found->ranks[1], "1");
        assert_has(found->call[1], "exited with status 1");
        job_free(job);
    }
}

static struct job *reduced_once(void)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++) {
        ALL_REDUCE(job, rank, WORLD, 16);
        wait_done(job, rank, API_cudaStreamSynchronize, 0);
        gpu_done(job, rank, WORLD, 0);
    }
    return job;
}

/* Nobody waits for the rank that failed: the launcher terminates those who compute, which is what
 * the job's output ends with. */
static void failed_before_anybody_waited(void **state)
{
    (void)state;
    static const struct {
        int status, signal_of_others;
        const char *code;
    } cases[] = {{1, SIGTERM, "DC205"}, {0, 0, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = reduced_once();
        end(job, 2, END_EXIT, cases[i].status, false);
        job_sleep_ms(job, 10);
        for (int rank = 0; rank < RANKS; rank++)
            if (rank != 2)
                end(job, rank, cases[i].signal_of_others ? END_SIGNAL : END_EXIT,
                    cases[i].signal_of_others, false);
        ticks(job, 2000);
        if (!cases[i].code) {
            expect(job, NULL);
        } else {
            struct verdict verdict;
            const struct found *found = expect_in(job, &verdict, cases[i].code);
            assert_string_equal(found->ranks[0], "2");
            assert_has(found->call[0], "exited with status 1");
            assert_has(found->what, "the launcher terminated the other ranks");
        }
        job_free(job);
    }
}

/* A rank that left with status 0 without MPI_Finalize, so that mpirun ends the others. Nothing
 * is reported where it was done with the communicator, or the others were terminated first, much
 * later or by Ctrl-C, or one of them goes on. */
static void left_before_anybody_waited(void **state)
{
    (void)state;
    enum { DESTROYED = 1, AFTER_THEM = 2, ONE_STAYS = 4 };
    static const struct {
        int how, signal_of_others, later_ms;
        const char *code;
    } cases[] = {
        {0, SIGTERM, 10, "DC206"},       {DESTROYED, SIGTERM, 10, NULL},
        {AFTER_THEM, SIGTERM, 10, NULL}, {ONE_STAYS, SIGTERM, 10, NULL},
        {0, SIGTERM, 10000, NULL},       {0, SIGINT, 10, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int how = cases[i].how;
        struct job *job = reduced_once();
        struct verdict verdict;
        if (how & DESTROYED) {
            comm_call_enter(job, 2, API_ncclCommDestroy, WORLD);
            call_leave(job, 2);
        }
        if (!(how & AFTER_THEM))
            end(job, 2, END_EXIT, 0, false);
        job_sleep_ms(job, (uint64_t)cases[i].later_ms);
        for (int rank = how & ONE_STAYS ? 1 : 0; rank < RANKS; rank++)
            if (rank != 2)
                end(job, rank, END_SIGNAL, cases[i].signal_of_others, false);
        if (how & AFTER_THEM) {
            job_sleep_ms(job, 10);
            end(job, 2, END_EXIT, 0, false);
        }
        ticks(job, 2000);
        const struct found *found = expect_in(job, &verdict, cases[i].code);
        if (cases[i].code) {
            assert_int_equal(found->certainty, POSSIBLE);
            assert_string_equal(found->ranks[1], "2");
            assert_string_equal(found->what, "rank 2 left after 1 operation, and ranks 0-1,3 were "
                                             "terminated by SIGTERM");
        }
        job_free(job);
    }
}

/* A program may return a status as its result; where every rank does, the job has failed, if these
 * are all its ranks. Who was first is named, however long before, but for a crash. */
static void every_rank_exits_with_an_error(void **state)
{
    (void)state;
    enum { MIXED = 1, NOT_ALL_STARTED = 2, NOT_ALL_JOINED = 4, CRASH = 8 };
    static const struct {
        int first, how, later_ms;
        const char *named, *others, *said;
    } cases[] = {
        {2, 0, 10, "2", "0-1,3", "exited with status 7"},
        {2, MIXED, 10, "2", "0-1", "exited with status 7"},
        {3, 0, 300000, "3", "0-2", "exited with status 7"},
        {0, CRASH, 300000, "1", "0", "was killed by SIGSEGV"},
        {2, NOT_ALL_STARTED, 10, "2", "0-1,3", "exited with status 7"},
        {2, NOT_ALL_JOINED, 10, "2", "0-1,3", "exited with status 7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int how = cases[i].how, first = cases[i].first, ranks = RANKS + !!(how & NOT_ALL_JOINED);
        struct job *job = job_new(RANKS + !!(how & NOT_ALL_STARTED));
        struct verdict verdict;
        for (int rank = 0; rank < RANKS; rank++)
            init_enter(job, rank, WORLD, ranks, rank, 1000 + (uint64_t)rank);
        for (int rank = 0; rank < RANKS; rank++)
            init_leave(job, rank, WORLD, ranks, rank, 0);
        end(job, first, END_EXIT, 7, false);
        job_sleep_ms(job, (uint64_t)cases[i].later_ms);
        if (how & CRASH)
            end(job, 1, END_SIGNAL, SIGSEGV, false);
        for (int rank = 0; rank < RANKS; rank++)
            if (rank != first && !(how & CRASH && rank == 1))
                end(job, rank, END_EXIT, rank == 3 && how & MIXED ? 0 : 1, false);
        ticks(job, 2000);
        const struct found *found = expect_in(job, &verdict, "DC205");
        bool crashed = how & CRASH, have_all = !how || crashed;
        assert_int_equal(found->severity, crashed ? SEVERITY_ERROR : SEVERITY_WARNING);
        assert_string_equal(found->ranks[0], cases[i].named);
        assert_string_equal(found->ranks[1], cases[i].others);
        assert_has(found->call[0], cases[i].said);
        assert_int_equal(strstr(found->what, "all other ranks failed") != NULL, have_all);
        assert_int_equal(strstr(found->what, "after it") != NULL, !how);
        job_free(job);
    }
}

/* One process failed, the others did what they had to: by its status a warning, since a program may
 * return one as its result; by a signal an error, unless people or launchers end programs by it; as
 * possible where nobody knows how, unless it had called exit(). */
static void one_process_failed(void **state)
{
    (void)state;
    enum { EXITS = 1, ALONE = 2, HELPER = 4, CALL_FAILS = 8, GOES_ON = 16 };
    static const struct {
        int how, value, flags, severity; /* -1: nothing is reported */
        const char *said;
    } cases[] = {
        {END_EXIT, 3, 0, SEVERITY_WARNING, "exited with status 3"},
        {END_EXIT, 3, ALONE, SEVERITY_WARNING, "exited with status 3"},
        {END_EXIT, 3, HELPER, -1, NULL},
        {END_EXIT, 0, 0, -1, NULL},
        {END_EXIT, 1, CALL_FAILS, SEVERITY_ERROR, "cudaMalloc had returned CUDA error 2"},
        {END_EXIT, 1, CALL_FAILS | GOES_ON, SEVERITY_WARNING, "exited with status 1"},
        {END_SIGNAL, SIGKILL, 0, SEVERITY_ERROR, "was killed by SIGKILL"},
        {END_SIGNAL, SIGKILL, ALONE, SEVERITY_ERROR, "was killed by SIGKILL"},
        {END_SIGNAL, SIGSEGV, ALONE, SEVERITY_ERROR, "was killed by SIGSEGV"},
        {END_SIGNAL, SIGPIPE, ALONE, SEVERITY_ERROR, "was killed by SIGPIPE"},
        {END_SIGNAL, SIGTERM, ALONE, -1, NULL},
        {END_SIGNAL, SIGINT, ALONE, -1, NULL},
        {END_EXIT, 128 + SIGTERM, ALONE, -1, NULL},
        {END_UNKNOWN, 0, ALONE, SEVERITY_WARNING, "is gone"},
        {END_UNKNOWN, 0, ALONE | EXITS, -1, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int flags = cases[i].flags, ranks = flags & ALONE ? 1 : RANKS, failed = ranks - 1;
        struct job *job = job_new(ranks + !!(flags & HELPER));
        job_init(job, WORLD, 0, ranks - 1);
        for (int rank = 0; rank < ranks; rank++) {
            ALL_REDUCE(job, rank, WORLD, 16);
            wait_done(job, rank, API_cudaStreamSynchronize, 0);
            gpu_done(job, rank, WORLD, 0);
        }
        if (flags & CALL_FAILS)
            job_record(job, failed, (struct record){.api = API_cudaMalloc, .result = 2});
        for (int rank = 0; rank < ranks && flags & GOES_ON; rank++) {
            ALL_REDUCE(job, rank, WORLD, 16);
            wait_done(job, rank, API_cudaStreamSynchronize, 0);
        }
        if (flags & EXITS)
            job_record(job, failed, (struct record){.api = API_notice_exit});
        for (int rank = 0; rank < ranks; rank++)
            if (rank != failed || flags & HELPER)
                end(job, rank, END_EXIT, 0, false);
        end(job, flags & HELPER ? ranks : failed, cases[i].how, cases[i].value, false);
        ticks(job, 2000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, cases[i].said ? "DC205" : NULL);
        if (cases[i].said) {
            bool is_known = cases[i].how != END_UNKNOWN;
            assert_int_equal(found->severity, cases[i].severity);
            assert_int_equal(found->certainty, is_known ? CERTAIN : POSSIBLE);
            assert_has(found->what, cases[i].said);
        }
        job_free(job);
    }
}

static void job_killed_as_a_whole_is_none(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGKILL};
    for (int k = 0; k < 3; k++) {
        struct job *job = job_new(RANKS);
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS; rank++) {
            ALL_REDUCE(job, rank, WORLD, 16);
            wait_done(job, rank, API_cudaStreamSynchronize, 0);
        }
        ALL_REDUCE(job, 0, WORLD, 16); /* rank 0 was a little ahead */
        wait_enter(job, 0, API_cudaStreamSynchronize, 0);
        for (int rank = 0; rank < RANKS; rank++) {
            end(job, rank, END_SIGNAL, signals[k], false);
            job_sleep_ms(job, 50);
        }
        ticks(job, 3000);
        expect(job, NULL);
        job_free(job);
    }
}

static void uneven_inputs(void **state)
{
    (void)state;
    for (int by_exit = 0; by_exit < 2; by_exit++)
        for (int faulty = 0; faulty < 2; faulty++) {
            struct job *job = job_new(RANKS);
            job_init(job, WORLD, 0, RANKS - 1);
            for (int rank = 0; rank < RANKS; rank++) {
                for (int step = 0; step < 10 + (faulty && rank == 3); step++) {
                    ALL_REDUCE(job, rank, WORLD, 16);
                    if (step < 10)
                        wait_done(job, rank, API_cudaStreamSynchronize, 0);
                    else
                        wait_enter(job, rank, API_cudaStreamSynchronize, 0);
                }
                if (faulty && rank == 3)
                    continue;
                comm_call_enter(job, rank, API_ncclCommDestroy, WORLD);
                if (by_exit) {
                    call_leave(job, rank);
                    end(job, rank, END_EXIT, 0, false);
                }
            }
            if (!faulty && !by_exit)
                for (int rank = 0; rank < RANKS; rank++)
                    call_leave(job, rank);
            ticks(job, 12000);
            struct verdict verdict;
            const struct found *found = expect_in(job, &verdict, faulty ? "DC206" : NULL);
            if (faulty) {
                assert_int_equal(found->number, 10);
                assert_string_equal(found->ranks[0], "3");
                assert_string_equal(found->ranks[1], "0-2");
                assert_has(found->what, "ranks 0-2 left after 10 operations");
            }
            job_free(job);
        }
}

/* Rank 0's reductions of two communicators are one behind the other on its stream; its peer has
 * left the second: rank 0 is the one that called it. */
static void queue_of_a_rank_whose_peer_left(void **state)
{
    (void)state;
    struct job *job = job_new(2);
    job_init(job, WORLD, 0, 1);
    job_init(job, CONTROL, 0, 1);
    for (int rank = 0; rank < 2; rank++) {
        ALL_REDUCE(job, rank, WORLD, 16);
        ALL_REDUCE(job, rank, CONTROL, 16);
        wait_done(job, rank, API_cudaStreamSynchronize, 0);
    }
    comm_call_enter(job, 1, API_ncclCommDestroy, CONTROL);
    ALL_REDUCE(job, 0, WORLD, 16);
    ALL_REDUCE(job, 0, CONTROL, 16);
    wait_enter(job, 0, API_cudaStreamSynchronize, 0);
    ticks(job, 12000);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC206");
    assert_string_equal(found->ranks[0], "0");
    assert_string_equal(found->where[0], "in cudaStreamSynchronize");
    assert_has(found->what, "rank 1 left after 1 operation; rank 0 goes on and waits in ");
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ended_rank_is_named_once),
        cmocka_unit_test(end_replaces_what_was_supposed),
        cmocka_unit_test(gang_ended_at_once_is_one_finding),
        cmocka_unit_test(terminated_after_another_left_is_no_cause),
        cmocka_unit_test(failed_before_anybody_waited),
        cmocka_unit_test(left_before_anybody_waited),
        cmocka_unit_test(ended_before_its_first_call),
        cmocka_unit_test(ended_before_it_joined),
        cmocka_unit_test(every_rank_exits_with_an_error),
        cmocka_unit_test(one_process_failed),
        cmocka_unit_test(job_killed_as_a_whole_is_none),
        cmocka_unit_test(uneven_inputs),
        cmocka_unit_test(queue_of_a_rank_whose_peer_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
