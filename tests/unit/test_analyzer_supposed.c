/* What is supposed and not proven: that an idle thread does not make the missing call, and what a
 * job waited for that was ended from outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD   UINT64_C(0x5ae7000000000001)
#define CONTROL UINT64_C(0xc0de000000000002)

enum { RANKS = 4, MAIN = 100, AUTOGRAD = 500, GRADIENTS = 0x10, OTHER = 0x20 };

static void step(struct job *job, int rank)
{
    job_thread(job, rank, AUTOGRAD + (uint32_t)rank);
    for (int bucket = 0; bucket < 3; bucket++)
        ALL_REDUCE(job, rank, WORLD, 100 + (uint64_t)bucket, .stream = GRADIENTS);
    job_thread(job, rank, MAIN + (uint32_t)rank);
    wait_enter(job, rank, API_cudaStreamSynchronize, GRADIENTS);
}

/* PyTorch: the autograd thread and the main thread issue on one communicator. The main threads are
 * stuck in a circle that an autograd thread could still break, but it only works for its main
 * thread. */
static struct job *idle_autograd_for(bool busy, int quarters)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    job_init(job, CONTROL, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++) {
        ALL_REDUCE(job, rank, WORLD, 5, .stream = GRADIENTS); /* parameters, by the main thread */
        step(job, rank);
        call_leave(job, rank);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank == 3) {
            step(job, rank); /* without the barrier */
            continue;
        }
        ALL_REDUCE(job, rank, CONTROL, 1, .stream = OTHER);
        wait_enter(job, rank, API_cudaStreamSynchronize, OTHER);
    }
    for (int i = 0; i < quarters; i++) {
        ticks(job, 250);
        for (int rank = 0; rank < RANKS && busy; rank++) {
            job_thread(job, rank, AUTOGRAD + (uint32_t)rank);
            range_push(job, rank, "backward");
            job_thread(job, rank, MAIN + (uint32_t)rank);
        }
    }
    return job;
}

static struct job *idle_autograd(bool busy)
{
    return idle_autograd_for(busy, 12);
}

static void idle_thread_is_supposed_to_stay_so(void **state)
{
    (void)state;
    struct job *job = idle_autograd(false);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC201");
    assert_int_equal(found->certainty, POSSIBLE);
    assert_int_equal(found->comm, CONTROL);
    assert_string_equal(found->ranks[1], "3");
    job_free(job);
    job = idle_autograd(true);
    expect(job, NULL);
    job_free(job);
}

/* A trace that was cut off before its host's first tick: no thread has been idle for any time. */
static void without_a_tick_nobody_is_idle(void **state)
{
    (void)state;
    struct job *job = idle_autograd_for(false, 0);
    expect(job, NULL);
    job_free(job);
}

/* It went on after all: taken back. */
static void supposition_is_taken_back(void **state)
{
    (void)state;
    struct job *job = idle_autograd(false);
    job_thread(job, 3, AUTOGRAD + 3);
    ALL_REDUCE(job, 3, CONTROL, 1, .stream = OTHER);
    for (int rank = 0; rank < RANKS - 1; rank++) {
        job_thread(job, rank, MAIN + (uint32_t)rank);
        job_record(job, rank,
                   (struct record){.api = API_cudaStreamSynchronize, .phase = RECORD_LEAVE});
        step(job, rank);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        job_thread(job, rank, MAIN + (uint32_t)rank);
        job_record(job, rank,
                   (struct record){.api = API_cudaStreamSynchronize, .phase = RECORD_LEAVE});
    }
    ticks(job, 500);
    expect(job, NULL);
    job_free(job);
}

/* At the end of the run rank 0 saves while its peers exit; rank 3 has one more batch. Who left is
 * reported when it is known of rank 0: it exits as well, or stays. */
static void last_to_leave(void **state)
{
    (void)state;
    for (int stays = 0; stays < 2; stays++) {
        struct job *job = job_new(RANKS);
        struct verdict verdict;
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS; rank++) {
            ALL_REDUCE(job, rank, WORLD, 8);
            wait_done(job, rank, API_cudaStreamSynchronize, 0);
        }
        ALL_REDUCE(job, 3, WORLD, 8);
        wait_enter(job, 3, API_cudaStreamSynchronize, 0);
        for (int rank = 1; rank < 3; rank++)
            end(job, rank, END_EXIT, 0, false);
        ticks(job, 1000);
        kernel(job, 0, 0, "save", 0);
        ticks(job, 4000);
        expect(job, NULL);
        if (!stays)
            end(job, 0, END_EXIT, 0, false);
        ticks(job, stays ? 7000 : 500);
        const struct found *found = expect_in(job, &verdict, stays ? "DC201" : "DC206");
        assert_string_equal(found->ranks[0], "3");
        assert_int_equal(found->certainty, CERTAIN);
        if (!stays)
            assert_string_equal(found->ranks[1], "0-2");
        job_free(job);
    }
}

/* The job is ended while three ranks wait for the fourth: said before (by `ddpcheck run`) or not,
 * the ends being signals or, where the program handles them, exit statuses. */
static void ended_while_waiting(void **state)
{
    (void)state;
    static const struct {
        bool said, by_signal;
        uint64_t waited_ms;
        const char *code;
    } cases[] = {
        {true, true, 3000, "DC201"},   {true, false, 3000, "DC201"}, {false, true, 3000, "DC201"},
        {false, false, 3000, "DC205"}, {true, true, 500, NULL},      {false, true, 500, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job *job = job_new(RANKS);
        struct verdict verdict;
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS - 1; rank++) {
            ALL_REDUCE(job, rank, WORLD, 8);
            wait_enter(job, rank, API_cudaStreamSynchronize, 0);
        }
        ticks(job, cases[i].waited_ms);
        if (cases[i].said)
            job_record(job, 0, (struct record){.api = API_notice_ending});
        for (int rank = RANKS - 1; rank >= 0; rank--)
            end(job, rank, cases[i].by_signal ? END_SIGNAL : END_EXIT, cases[i].by_signal ? 15 : 1,
                false);
        const struct found *found = expect_in(job, &verdict, cases[i].code);
        if (found && !strcmp(found->code, "DC201")) {
            assert_int_equal(found->certainty, POSSIBLE);
            assert_string_equal(found->ranks[0], "0-2");
            assert_string_equal(found->ranks[1], "3");
        }
        job_free(job);
    }
}

enum { WATCHDOG = 900 };

/* Rank 3 is silent and three ranks wait for it, when rank 0 gives up long before hang_after: its
 * watchdog aborts the communicator, or ends the process. */
static void one_gives_up_while_all_wait(void **state)
{
    (void)state;
    static const struct {
        bool aborts;
        uint64_t waited_ms;
        const char *code;
    } cases[] = {{true, 1500, "DC201"}, {true, 500, NULL}, {false, 1500, "DC201"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job *job = job_new(RANKS);
        struct verdict verdict;
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS - 1; rank++) {
            ALL_REDUCE(job, rank, WORLD, 8);
            wait_enter(job, rank, API_cudaStreamSynchronize, 0);
        }
        ticks(job, cases[i].waited_ms);
        job_thread(job, 0, WATCHDOG);
        if (cases[i].aborts)
            comm_call_enter(job, 0, API_ncclCommAbort, WORLD);
        else
            job_record(job, 0, (struct record){.api = API_notice_exit, .thread = WATCHDOG});
        if (!cases[i].aborts)
            end(job, 0, END_EXIT, 1, false);
        ticks(job, cases[i].code ? 3000 : 250);
        const struct found *found = expect_in(job, &verdict, cases[i].code);
        if (cases[i].code) {
            assert_int_equal(found->certainty, POSSIBLE);
            assert_string_equal(found->ranks[0], "0-2");
            assert_string_equal(found->ranks[1], "3");
        }
        job_free(job);
    }
}

/* Every rank has called it and waits, and nothing happens any more. */
static void all_wait_and_nothing_happens(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++) {
        ALL_REDUCE(job, rank, WORLD, 100, .stream = GRADIENTS);
        wait_enter(job, rank, API_cudaStreamSynchronize, GRADIENTS);
    }
    ticks(job, 12000);
    const struct found *found = expect(job, "DC211");
    assert_int_equal(found->certainty, POSSIBLE);
    assert_string_equal(found->ranks[0], "0-3");
    assert_non_null(strstr(found->what, "which every rank has called, does not end"));
    job_free(job);
}

static void add_dormant(struct job *job, int rank, uint64_t id, const char *place)
{
    struct record dormant = {.api = API_notice_dormant};
    dormant.range.id = id;
    dormant.range.domain = 4711 + (uint64_t)rank;
    dormant.range.text = intern(job, rank, place);
    job_record(job, rank, dormant);
}

/* No rank has called NCCL when the job is ended after a silence, or for another reason. */
static void ended_before_any_call(void **state)
{
    (void)state;
    for (int silent = 0; silent <= 1; silent++) {
        struct job *job = job_new(RANKS);
        struct record ending = {.api = API_notice_ending};
        for (int rank = 0; rank < RANKS - 1; rank++)
            add_dormant(job, rank, (uint64_t)rank, "main() at train.py:9, in init_process_group()");
        add_dormant(job, RANKS - 1, RANKS - 1, "load() at train.py:5");
        ending.ending.silence_ns = silent ? UINT64_C(40000000000) : 0;
        job_record(job, 0, ending);
        const struct found *found = expect(job, silent ? "DC211" : NULL);
        if (silent) {
            assert_int_equal(found->certainty, POSSIBLE);
            assert_int_equal(found->sides, 2);
            assert_string_equal(found->ranks[0], "0-2");
            assert_string_equal(found->ranks[1], "3");
            assert_string_equal(found->call[1], "made no NCCL call, in load() at train.py:5");
            struct verdict verdict;
            job_init(job, WORLD, 0, RANKS - 1); /* it went on all the same */
            ticks(job, 2000);
            expect_in(job, &verdict, NULL);
            assert_string_equal(verdict.resolved, "DC211?:3 ");
        }
        job_free(job);
    }
}

/* No launcher numbers them; they are in more places than a finding has sides. */
static void ended_before_any_call_in_many_places(void **state)
{
    (void)state;
    enum { PROCESSES = FINDING_SIDES_MAX + 4 };
    char place[32];
    struct job *job = job_new(PROCESSES);
    struct record ending = {.api = API_notice_ending, .ending.silence_ns = 1};
    for (int i = 0; i < PROCESSES; i++) {
        snprintf(place, sizeof place, "main() at train.py:%d", i < 2 ? 1 : i);
        add_dormant(job, i, UINT64_MAX, place);
    }
    job_record(job, 0, ending);
    const struct found *found = expect(job, "DC211");
    assert_int_equal(found->sides, FINDING_SIDES_MAX);
    assert_string_equal(found->ranks[0], "none");
    assert_non_null(strstr(found->what, "processes 4711-4712 are in main() at train.py:1; "));
    assert_non_null(strstr(found->what, "; processes 4719-4722"));
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_thread_is_supposed_to_stay_so),
        cmocka_unit_test(without_a_tick_nobody_is_idle),
        cmocka_unit_test(supposition_is_taken_back),
        cmocka_unit_test(last_to_leave),
        cmocka_unit_test(ended_while_waiting),
        cmocka_unit_test(one_gives_up_while_all_wait),
        cmocka_unit_test(all_wait_and_nothing_happens),
        cmocka_unit_test(ended_before_any_call),
        cmocka_unit_test(ended_before_any_call_in_many_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
