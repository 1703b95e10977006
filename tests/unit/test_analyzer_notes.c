/* DC601 to DC603: what costs time, and what only seems to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loop_stream.h"

enum { LATE = 2, MANY = 100, LARGE = 1 << 20 };

static void expect_notes(struct job *job, const char *notes)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct verdict verdict;
        job_analyze(job, seed, &verdict);
        assert_int_equal(verdict.count, 0);
        assert_string_equal(verdict.notes, notes);
    }
    job_free(job);
}

/* All wait for the host at the end of an iteration, so that its delay is that of all. */
static void meet(struct job *job, int buckets)
{
    for (int bucket = 0; bucket < buckets; bucket++)
        ALL_RANKS(rank)
    ALL_REDUCE(job, rank, WORLD, LARGE);
    ALL_RANKS(rank)
    wait_done(job, rank, API_cudaStreamSynchronize, 0);
}

static void one_rank_is_late(void **state)
{
    (void)state;
    struct job *job = loop_job_new();
    for (int i = 0; i < MANY; i++) {
        ALL_RANKS(rank)
        if (rank != LATE)
            ALL_REDUCE(job, rank, WORLD, LARGE);
        job_sleep_ms(job, 5);
        ALL_REDUCE(job, LATE, WORLD, LARGE);
        job_sleep_ms(job, 10);
        meet(job, 0);
    }
    expect_notes(job, "DC601:2 ");
}

/* Each in its turn; one, but for no time that counts; or for a small share of the time. */
static void lateness_that_is_none(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        struct job *job = loop_job_new();
        for (int i = 0; i < MANY; i++) {
            int late = way == 0 ? i % RANKS : LATE;
            ALL_RANKS(rank)
            if (rank != late)
                ALL_REDUCE(job, rank, WORLD, LARGE);
            if (way != 1)
                job_sleep_ms(job, 5);
            ALL_REDUCE(job, late, WORLD, LARGE);
            job_sleep_ms(job, way == 2 ? 400 : 10);
        }
        expect_notes(job, "");
    }
}

static void small_one_by_one(void **state)
{
    (void)state;
    for (int way = 0; way < 5; way++) {
        struct job *job = loop_job_new();
        for (int i = 0; i < 10; i++)
            ALL_RANKS(rank)
            {
                if (way == 1)
                    group_start(job, rank);
                for (int tensor = 0; tensor < (way == 2 ? 12 : 20); tensor++) {
                    ALL_REDUCE(job, rank, WORLD, way == 3 ? LARGE : 512);
                    if (way == 4)
                        wait_done(job, rank, API_cudaStreamSynchronize, 0);
                }
                if (way == 1)
                    group_end(job, rank);
                wait_done(job, rank, API_cudaStreamSynchronize, 0);
            }
        expect_notes(job, way == 0 ? "DC602?:0-3 " : "");
    }
}

static void nothing_overlaps(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct job *job = loop_job_new();
        for (int i = 0; i < ITERATIONS; i++)
            ALL_RANKS(rank)
            {
                begin(job, rank, i);
                range_push(job, rank, "backward");
                if (way == 1) /* the first bucket goes early */
                    ALL_REDUCE(job, rank, WORLD, LARGE);
                range_pop(job, rank);
                for (int bucket = way == 1; bucket < (way == 3 ? 1 : 4); bucket++)
                    ALL_REDUCE(job, rank, WORLD, way == 2 ? 1000 : LARGE);
                step(job, rank, "model");
                end_of_range(job, rank);
            }
        expect_notes(job, way == 0 ? "DC603?:0-3 " : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_is_late),
        cmocka_unit_test(lateness_that_is_none),
        cmocka_unit_test(small_one_by_one),
        cmocka_unit_test(nothing_overlaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
