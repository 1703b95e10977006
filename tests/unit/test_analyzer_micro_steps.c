/* Training loops of several micro steps, optimizers or models: DC505 to DC507 and what they are
 * not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loop_stream.h"

/* --- DC505 --- */

static void reduced_after_another_micro_step(void **state)
{
    (void)state;
    for (int named = 0; named < 2; named++) {
        struct job *job = loop_job_new();
        for (int i = 0; i < ITERATIONS; i++)
            ALL_RANKS(rank)
            {
                begin(job, rank, i);
                for (int micro = 0; micro < 4; micro++) {
                    if (named)
                        range_push(job, rank, "micro_step");
                    backward(job, rank, "model", 0, micro == (rank == ODD ? 1 : 3) ? BUCKETS : 0);
                    if (named)
                        range_pop(job, rank);
                }
                step(job, rank, "model");
                end_of_range(job, rank);
            }
        struct verdict verdict;
        const struct found *found = expect_always(job, &verdict, "DC505");
        assert_int_equal(found->number, 0);
        assert_int_equal(found->certainty, POSSIBLE);
        assert_string_equal(found->ranks[0], "0-2");
        assert_string_equal(found->ranks[1], "3");
        assert_has(found->what, "rank 3 reduces in micro-step 2 of iteration 0");
        assert_has(found->what, "ranks 0-2 reduce in micro-step 4");
        job_free(job);
    }
}

static void reduced_in_every_micro_step(void **state)
{
    (void)state;
    for (int micro_steps = 2; micro_steps < 5; micro_steps++)
        for (int named = 0; named < 2; named++) {
            struct job *job = loop_job_new();
            for (int i = 0; i < ITERATIONS; i++)
                ALL_RANKS(rank)
                {
                    begin(job, rank, i);
                    for (int micro = 0; micro < micro_steps; micro++) {
                        if (named)
                            range_push(job, rank, "micro_step");
                        backward(job, rank, "model", 0, BUCKETS);
                        if (named)
                            range_pop(job, rank);
                    }
                    step(job, rank, "model");
                    end_of_range(job, rank);
                }
            struct verdict verdict;
            bool reported = named || micro_steps > 2; /* two backward passes alone are a GAN's */
            const struct found *found = expect_always(job, &verdict, reported ? "DC505" : NULL);
            if (reported) {
                assert_string_equal(found->ranks[0], "0-3");
                assert_int_equal(found->severity, SEVERITY_WARNING);
                assert_int_equal(found->times, RANKS * (ITERATIONS - 1));
            }
            job_free(job);
        }
}

/* --- DC506 --- */

static void a_step_is_skipped(void **state)
{
    (void)state;
    struct job *job = loop_job_new();
    for (int i = 0; i < 2 * ITERATIONS; i++)
        ALL_RANKS(rank)
        {
            begin(job, rank, i);
            backward(job, rank, "model", 0, BUCKETS);
            if (rank != 1 || (i != STRIKES && i != STRIKES + 4))
                step(job, rank, "model");
            end_of_range(job, rank);
        }
    struct verdict verdict;
    const struct found *found = expect_always(job, &verdict, "DC506");
    assert_int_equal(found->certainty, POSSIBLE);
    assert_int_equal(found->times, 2);
    assert_string_equal(found->ranks[0], "0,2-3");
    assert_string_equal(found->ranks[1], "1");
    assert_string_equal(found->call[1], "no step of its optimizer (model step)");
    assert_has(found->what, "in iteration 5");
    job_free(job);
}

/* --- DC507 --- */

/* Two models on one communicator; the odd rank reduces them the other way round, always or once. */
static struct job *two_models(bool always, bool equal_sizes)
{
    struct job *job = loop_job_new();
    for (int i = 0; i < ITERATIONS; i++)
        ALL_RANKS(rank)
        {
            bool swapped = rank == ODD && (always || i == STRIKES);
            begin(job, rank, i);
            for (int turn = 0; turn < 2; turn++) {
                bool first = (turn == 0) != swapped;
                backward(job, rank, first ? "generator" : "discriminator",
                         first || equal_sizes ? 0 : 1, equal_sizes ? 2 : BUCKETS);
            }
            step(job, rank, "generator");
            end_of_range(job, rank);
        }
    return job;
}

static void models_in_another_order(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct job *job = two_models(way & 1, way & 2);
        struct verdict verdict;
        const struct found *found = expect_always(job, &verdict, "DC507");
        assert_int_equal(found->certainty, way & 2 ? POSSIBLE : CERTAIN);
        assert_string_equal(found->ranks[0], "0-2");
        assert_string_equal(found->ranks[1], "3");
        assert_has(
            found->what,
            "ranks 0-2 are in generator reduce bucket 0, rank 3 is in discriminator reduce bucket");
        job_free(job);
    }
}

/* Each forward pass broadcasts the model's buffers: the ranks part where one reduces and the others
 * broadcast. */
static void models_with_buffers_in_another_order(void **state)
{
    (void)state;
    struct job *job = loop_job_new();
    for (int i = 0; i < STRIKES + 1; i++)
        ALL_RANKS(rank)
        {
            bool swapped = rank == ODD && i == STRIKES;
            begin(job, rank, i);
            forward_with_buffers(job, rank, "generator");
            if (swapped)
                backward(job, rank, "generator", 0, 1);
            forward_with_buffers(job, rank, "discriminator");
            backward(job, rank, "discriminator", 1, BUCKETS);
            if (!swapped)
                backward(job, rank, "generator", 0, 1);
            end_of_range(job, rank);
        }
    struct verdict verdict;
    const struct found *found = expect_always(job, &verdict, "DC507");
    assert_int_equal(found->certainty, CERTAIN);
    assert_has(found->what,
               "ranks 0-2 are in discriminator forward, rank 3 is in generator reduce bucket 0");
    job_free(job);
}

/* A model that a rank leaves out is not one in another order, also if the job goes on. */
static void a_model_is_left_out(void **state)
{
    (void)state;
    for (int more = 1; more <= 2; more++) {
        struct job *job = loop_job_new();
        for (int i = 0; i < STRIKES + more; i++)
            ALL_RANKS(rank)
            {
                begin(job, rank, i);
                if (rank != ODD || i != STRIKES)
                    backward(job, rank, "generator", 0, BUCKETS);
                backward(job, rank, "discriminator", 1, BUCKETS);
                end_of_range(job, rank);
            }
        expect_always(job, &(struct verdict){0}, "DC102");
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduced_after_another_micro_step),
        cmocka_unit_test(reduced_in_every_micro_step),
        cmocka_unit_test(a_step_is_skipped),
        cmocka_unit_test(models_in_another_order),
        cmocka_unit_test(models_with_buffers_in_another_order),
        cmocka_unit_test(a_model_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
