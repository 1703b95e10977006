/* DC504 to DC507: members that are in different places of their training loops; each with what
 * looks like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loop_stream.h"

/* --- DC504 --- */

/* One rank leaves out buckets `first` .. in one iteration and goes on. */
static struct job *skipping_job(int first, bool numbered)
{
    struct job *job = loop_job_new();
    for (int i = 0; i < ITERATIONS; i++)
        ALL_RANKS(rank)
        {
            begin(job, rank, numbered ? i : -1);
            backward(job, rank, "model", 0, rank == ODD && i == STRIKES ? first : BUCKETS);
            step(job, rank, "model");
            end_of_range(job, rank);
        }
    return job;
}

static void buckets_are_left_out(void **state)
{
    (void)state;
    static const char *const made[] = {"after 0 of the 3", "after 1 of the 3", "after 2 of the 3"};
    for (int first = 0; first < BUCKETS; first++) {
        struct job *job = skipping_job(first, true);
        struct verdict verdict;
        const struct found *found = expect_always(job, &verdict, "DC504");
        assert_int_equal(found->number, BUCKETS * STRIKES + first);
        assert_int_equal(found->sides, 2);
        assert_string_equal(found->ranks[0], "0-2");
        assert_string_equal(found->ranks[1], "3");
        assert_string_equal(
            found->call[1],
            "ncclAllReduce(count=1000, float32, sum) in the next iteration already");
        /* the whole iteration left out: the calls match all the same */
        assert_int_equal(found->certainty, first ? CERTAIN : POSSIBLE);
        assert_has(found->what, "rank 3 began iteration 6");
        assert_has(found->what, made[first]);
        assert_has(found->what, "ranks 0-2 are still in iteration 5 (model reduce bucket");
        job_free(job);
    }
}

/* Names without numbers: an iteration that was left out altogether can't be seen, one that was
 * begun can. */
static void iterations_without_numbers(void **state)
{
    (void)state;
    struct job *job = skipping_job(1, false);
    expect_always(job, &(struct verdict){0}, "DC504");
    job_free(job);
}

/* PyTorch's emit_nvtx names no iterations, but the optimizer's steps. */
static void steps_end_iterations(void **state)
{
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        struct job *job = loop_job_new();
        for (int i = 0; i < ITERATIONS; i++)
            ALL_RANKS(rank)
            {
                bool strikes = faulty && rank == ODD && i == STRIKES;
                backward(job, rank, "DistributedDataParallel", 0, strikes ? 1 : BUCKETS);
                range_push(job, rank, "Optimizer.zero_grad#SGD.zero_grad");
                range_pop(job, rank);
                range_push(job, rank, "Optimizer.step#SGD.step");
                range_pop(job, rank);
            }
        expect_always(job, &(struct verdict){0}, faulty ? "DC504" : NULL);
        job_free(job);
    }
}

/* Backward runs on the framework's own thread, whose ranges say nothing, while the loop's thread
 * waits for it. */
static void backward_on_a_thread_of_its_own(void **state)
{
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        struct job *job = loop_job_new();
        for (int i = 0; i < ITERATIONS; i++)
            ALL_RANKS(rank)
            {
                begin(job, rank, i);
                range_push(job, rank, "loss.backward");
                job_thread(job, rank, 900 + (uint32_t)rank);
                range_push(job, rank, "autograd::engine::evaluate_function: AccumulateGrad");
                for (uint64_t bucket = faulty && rank == ODD && i == STRIKES ? 2 : 0;
                     bucket < BUCKETS; bucket++)
                    ALL_REDUCE(job, rank, WORLD, 1000 + 100 * bucket);
                range_pop(job, rank);
                job_thread(job, rank, 100 + (uint32_t)rank);
                range_pop(job, rank);
                end_of_range(job, rank);
            }
        struct verdict verdict;
        job_analyze(job, 0, &verdict);
        assert_int_equal(verdict.count, faulty);
        /* the third bucket meets the others' first: what is left out is not the end, and that is
         * said as a mismatch */
        if (faulty)
            assert_string_equal(verdict.found[0].code, "DC102");
        job_free(job);
    }
}

/* Nothing names iterations: the round is found from the sequence itself, after a set-up, through an
 * evaluation. */
static void rounds_without_ranges(void **state)
{
    (void)state;
    for (int way = 0; way < 5; way++) {
        struct job *job = loop_job_new();
        ALL_RANKS(rank)
        for (int i = 0; i < 5; i++)
            issue(
                job, rank,
                (struct call){.api = API_ncclBroadcast, .comm = WORLD, .count = 77 + (uint64_t)i});
        for (int i = 0; i < 2 * ITERATIONS; i++)
            ALL_RANKS(rank)
            {
                bool strikes = rank == ODD && i == ITERATIONS;
                if (way == 3 && i == ITERATIONS - 1) /* rounds before it do not count any more */
                    ALL_REDUCE(job, rank, WORLD, 1);
                for (uint64_t bucket = 0; bucket < BUCKETS; bucket++) {
                    bool left_out = strikes && (way == 0   ? bucket == 2
                                                : way == 1 ? bucket > 0
                                                : way == 2 ? bucket == 1
                                                           : way == 3 && bucket == 2);
                    if (!left_out)
                        ALL_REDUCE(job, rank, WORLD, 1000 + 100 * bucket);
                }
            }
        struct verdict verdict;
        const struct found *found = expect_always(job, &verdict,
                                                  way < 2   ? "DC504"
                                                  : way < 4 ? "DC102"
                                                            : NULL);
        if (way < 2) {
            assert_int_equal(found->certainty, CERTAIN);
            assert_string_equal(found->ranks[0], "0-2");
            assert_has(found->what,
                       way ? "rank 3 began the next round after 1 of the 3 operations that "
                             "all ranks repeat on comm 5ae7 (4 ranks) since #5"
                           : "rank 3 began the next round after 2 of the 3 operations that "
                             "all ranks repeat on comm 5ae7 (4 ranks) since #5");
        }
        job_free(job);
    }
}

/* Not DC504: a rank that makes a call too many is not one that goes on too early. */
static void a_bucket_twice_is_a_mismatch(void **state)
{
    (void)state;
    struct job *job = loop_job_new();
    for (int i = 0; i < ITERATIONS; i++)
        ALL_RANKS(rank)
        {
            begin(job, rank, i);
            backward(job, rank, "model", 0, BUCKETS);
            if (rank == ODD && i == STRIKES)
                backward(job, rank, "model", 2, BUCKETS);
            end_of_range(job, rank);
        }
    expect_always(job, &(struct verdict){0}, "DC102");
    job_free(job);
}

/* Clean programs whose places differ, or seem to. */
static void the_rank_evaluates(struct job *job, int rank, int i)
{
    if (rank == 0 && i % 3 == 0) /* rank 0 alone, without collectives */
        for (int k = 0; k < 5; k++) {
            begin(job, rank, -1);
            end_of_range(job, rank);
        }
    iterate(job, rank, -1);
}

static void numbers_of_its_own(struct job *job, int rank, int i)
{
    iterate(job, rank, 100 * rank + i); /* each rank counts its own samples */
}

static void epochs_begin_at_zero(struct job *job, int rank, int i)
{
    iterate(job, rank, i % 3);
}

static void every_other_iteration_more(struct job *job, int rank, int i)
{
    begin(job, rank, i);
    backward(job, rank, "model", 0, i % 2 ? 1 : BUCKETS);
    end_of_range(job, rank);
}

static void company_without_batches(struct job *job, int rank, int i)
{
    begin(job, rank, i); /* Join: no backward, no step, the same collectives */
    if (rank == ODD && i >= STRIKES && i % 2)
        backward(job, rank, "model", 0, BUCKETS);
    else if (rank == ODD && i >= STRIKES)
        for (uint64_t bucket = 0; bucket < BUCKETS; bucket++)
            ALL_REDUCE(job, rank, WORLD, 1000 + 100 * bucket);
    else
        backward(job, rank, "model", 0, 0), backward(job, rank, "model", 0, BUCKETS),
            step(job, rank, "model");
    end_of_range(job, rank);
}

static void gan(struct job *job, int rank, int i)
{
    begin(job, rank, i);
    backward(job, rank, "discriminator", 0, 0); /* real images, no_sync */
    backward(job, rank, "discriminator", 0, BUCKETS);
    step(job, rank, "discriminator");
    backward(job, rank, "generator", 0, BUCKETS);
    if (i % 2)
        step(job, rank, "generator");
    end_of_range(job, rank);
}

static void sharded(struct job *job, int rank, int i)
{
    begin(job, rank, i);
    for (int layer = 0; layer < 3; layer++)
        issue(job, rank, (struct call){.api = API_ncclAllGather, .comm = WORLD, .count = 500});
    range_push(job, rank, "backward");
    for (int layer = 0; layer < 3; layer++) {
        issue(job, rank, (struct call){.api = API_ncclAllGather, .comm = WORLD, .count = 500});
        issue(job, rank, (struct call){.api = API_ncclReduceScatter, .comm = WORLD, .count = 500});
    }
    range_pop(job, rank);
    step(job, rank, "optimizer");
    end_of_range(job, rank);
}

static void pipeline(struct job *job, int rank, int i)
{
    begin(job, rank, i); /* stages make different numbers of passes before they meet */
    for (int pass = 0; pass < 2 + rank; pass++)
        backward(job, rank, "stage", 0, 0);
    ALL_REDUCE(job, rank, WORLD, 1); /* the gradients' norm, over all stages */
    if (rank % 2)
        step(job, rank, "embedding");
    step(job, rank, "stage");
    end_of_range(job, rank);
}

static void accumulation(struct job *job, int rank, int i)
{
    begin(job, rank, i);
    for (int micro = 0; micro < 4; micro++) {
        range_push(job, rank, "micro_step");
        backward(job, rank, "model", 0, micro == 3 ? BUCKETS : 0);
        range_pop(job, rank);
    }
    step(job, rank, "model");
    end_of_range(job, rank);
}

static void reduced_twice_for_two_losses(struct job *job, int rank, int i)
{
    begin(job, rank, i);
    backward(job, rank, "model", 0, BUCKETS);
    backward(job, rank, "model", 0, BUCKETS);
    step(job, rank, "model");
    end_of_range(job, rank);
}

static void a_critic_that_steps_often(struct job *job, int rank, int i)
{
    begin(job, rank, i);
    for (int k = 0; k < 5; k++) {
        backward(job, rank, "critic", 0, BUCKETS);
        step(job, rank, "critic");
    }
    end_of_range(job, rank);
}

static void overflow_on_all(struct job *job, int rank, int i)
{
    begin(job, rank, i);
    backward(job, rank, "model", 0, BUCKETS);
    if (i != STRIKES)
        step(job, rank, "model");
    end_of_range(job, rank);
}

static void clean_loops(void **state)
{
    (void)state;
    void (*const loops[])(struct job *, int, int) = {
        the_rank_evaluates,
        numbers_of_its_own,
        epochs_begin_at_zero,
        every_other_iteration_more,
        company_without_batches,
        gan,
        sharded,
        pipeline,
        accumulation,
        reduced_twice_for_two_losses,
        a_critic_that_steps_often,
        overflow_on_all,
    };
    for (size_t k = 0; k < sizeof loops / sizeof *loops; k++) {
        struct job *job = loop_job_new();
        for (int i = 0; i < 2 * ITERATIONS; i++)
            ALL_RANKS(rank)
        loops[k](job, rank, i);
        expect_always(job, &(struct verdict){0}, NULL);
        job_free(job);
    }
}

/* Ranges may be missing: what they say is not believed. */
static void lost_ranges_make_it_silent(void **state)
{
    (void)state;
    struct job *job = loop_job_new();
    ALL_RANKS(rank)
    {
        struct record lost = {.api = API_notice_lost};
        lost.lost.bulk = 1;
        job_record(job, rank, lost);
    }
    for (int i = 0; i < ITERATIONS; i++)
        ALL_RANKS(rank)
        {
            begin(job, rank, i);
            backward(job, rank, "model", 0, rank == ODD && i == STRIKES ? 0 : BUCKETS);
            end_of_range(job, rank);
        }
    struct verdict verdict;
    job_analyze(job, 0, &verdict);
    for (int i = 0; i < verdict.count; i++)
        assert_true(strncmp(verdict.found[i].code, "DC5", 3));
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_are_left_out),  cmocka_unit_test(iterations_without_numbers),
        cmocka_unit_test(steps_end_iterations),  cmocka_unit_test(backward_on_a_thread_of_its_own),
        cmocka_unit_test(rounds_without_ranges), cmocka_unit_test(a_bucket_twice_is_a_mismatch),
        cmocka_unit_test(clean_loops),           cmocka_unit_test(lost_ranges_make_it_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
