/* Which operations are an iteration, where the program names none: a rank that is late in each of a
 * hundred equal operations is late in a hundred iterations, not in twenty. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD   UINT64_C(0x5ae7000000000001)
#define PAIR    UINT64_C(0x5ae7000000000010) /* of ranks 0 and 1; of 2 and 3 the next */
#define BARRIER UINT64_C(0x5ae7000000000020)

enum {
    RANKS = 3,
    SPLIT_RANKS = 4,
    LATE = 1,
    GRADIENTS = 0x10,
    OPERATIONS = 100,
    ITERATIONS = 80,
    COUNT = 1000,
    LATE_MS = 8,
    STEP_MS = 20,
    LONG_MS = 100
};

/* The others begin `gap_ms` after the operation before, and one `late_ms` later. */
struct operation {
    uint64_t comm, count, gap_ms, late_ms;
};

static uint64_t comm_of(const struct operation *operation, int rank)
{
    return operation->comm == PAIR ? PAIR + (uint64_t)rank / 2 : operation->comm;
}

static void reduce(struct job *job, int rank, const struct operation *operation)
{
    ALL_REDUCE(job, rank, comm_of(operation, rank), operation->count, .stream = GRADIENTS);
    wait_enter(job, rank, API_cudaStreamSynchronize, GRADIENTS);
}

static void run(struct job *job, struct operation operation)
{
    int ranks = job_ranks(job);
    for (int rank = 0; rank < ranks; rank++)
        if (rank != LATE)
            reduce(job, rank, &operation);
    job_sleep_ms(job, operation.gap_ms);
    for (int rank = 0; rank < ranks; rank++)
        if (rank != LATE)
            gpu_started(job, rank, comm_of(&operation, rank), GRADIENTS);
    job_sleep_ms(job, operation.late_ms);
    reduce(job, LATE, &operation);
    gpu_started(job, LATE, comm_of(&operation, LATE), GRADIENTS);
    job_sleep_us(job, 100);
    for (int rank = 0; rank < ranks; rank++)
        gpu_done(job, rank, comm_of(&operation, rank), GRADIENTS);
    for (int rank = 0; rank < ranks; rank++)
        call_leave(job, rank);
}

static void expect_at_end(struct job *job, const char *notes, struct verdict *verdict)
{
    for (int rank = 0; rank < job_ranks(job); rank++)
        end(job, rank, END_EXIT, 0, false);
    job_analyze(job, 0, verdict);
    assert_int_equal(verdict->count, 0);
    assert_string_equal(verdict->notes, notes);
    job_free(job);
}

/* After every `period` operations one comes after a longer gap. */
static void expect_notes(int operations, int period, uint64_t gap_ms, const char *expected)
{
    struct verdict verdict;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int number = 0; number < operations; number++)
        run(job, (struct operation){WORLD, COUNT, number % period ? 0 : gap_ms, LATE_MS});
    expect_at_end(job, expected, &verdict);
}

/* Times are read every millisecond: now and then an operation seems to begin later by one. */
static void readings_are_no_iterations(void **state)
{
    (void)state;
    expect_notes(OPERATIONS, OPERATIONS, 0, "DC601:1 ");
    expect_notes(OPERATIONS, 5, 1, "DC601:1 ");
    expect_notes(OPERATIONS, 4, 1, "DC601:1 ");
}

/* What a step computes is no pause. Twenty steps are too few to see that they are iterations. */
static void steps_are_no_pauses(void **state)
{
    (void)state;
    expect_notes(OPERATIONS, 5, LONG_MS, "DC601:1 ");
    expect_notes(OPERATIONS, 10, LONG_MS, "DC601:1 ");
}

/* Layers are summed over all ranks, and gradients reduced by pairs once an iteration. */
struct split {
    int layers, buckets;
    int barrier, evaluation; /* period in iterations; 0 never */
    int evaluated;           /* layers that an evaluation has */
    uint64_t late_ms;
    const char *notes, *length;
};

static void run_layers(struct job *job, int layers, uint64_t late_ms)
{
    for (int layer = 0; layer < layers; layer++)
        run(job, (struct operation){WORLD, COUNT, layer ? 0 : STEP_MS, layer ? 0 : late_ms});
}

static void expect_split(const struct split *split)
{
    struct verdict verdict;
    struct job *job = job_new(SPLIT_RANKS);
    job_init(job, WORLD, 0, SPLIT_RANKS - 1);
    job_init(job, BARRIER, 0, SPLIT_RANKS - 1);
    job_init(job, PAIR, 0, 1);
    job_init(job, PAIR + 1, 2, 3);
    run(job, (struct operation){PAIR, COUNT, 0, 0}); /* parameters */
    for (int number = 1; number <= ITERATIONS; number++) {
        run_layers(job, split->layers, split->late_ms);
        for (int bucket = 0; bucket < split->buckets; bucket++)
            run(job, (struct operation){PAIR, COUNT, 0, 0});
        if (split->barrier && number % split->barrier == 0)
            run(job, (struct operation){BARRIER, 1, 0, 0});
        if (split->evaluation && number % split->evaluation == 0)
            run_layers(job, split->evaluated, 0);
    }
    expect_at_end(job, split->notes, &verdict);
    if (split->length)
        assert_has(verdict.last_note.what, split->length);
}

/* The rarest operation marks an iteration, unless that is a barrier. An evaluation is a pause. */
static void gradients_mark_iterations(void **state)
{
    static const struct split split[] = {
        {8, 1, 0, 0, 0, LATE_MS, "DC601:1 ", "of each iteration of 29"},
        {8, 2, 0, 0, 0, LATE_MS, "DC601:1 ", "of each iteration of 29"},
        {8, 1, 5, 0, 0, LATE_MS, "DC601:1 ", "of each iteration of 29"},
        {4, 1, 1, 0, 0, LATE_MS, "DC601:1 ", "of each iteration of 2"},
        {24, 3, 0, 0, 0, LATE_MS, "DC601:1 ", "of each iteration of 3"},
        {8, 1, 0, 20, 8, LATE_MS, "DC601:1 ", "of each iteration of 29"},
        {8, 2, 0, 10, 16, LATE_MS, "DC601:1 DC608:0-3 ", "of each iteration of 3"},
        {8, 1, 5, 0, 0, 0, "", NULL},
        {8, 2, 0, 20, 8, 0, "", NULL},
        {8, 2, 0, 10, 16, 0, "DC608:0-3 ", "every 10 iterations"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof split / sizeof *split; i++)
        expect_split(&split[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_are_no_iterations),
        cmocka_unit_test(steps_are_no_pauses),
        cmocka_unit_test(gradients_mark_iterations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
