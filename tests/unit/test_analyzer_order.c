/* DC204: two communicators in different orders, not hung. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define FIRST  UINT64_C(0xaaaa000000000001)
#define SECOND UINT64_C(0xbbbb000000000002)

enum { RANKS = 4, ONE = 0x10, TWO = 0x20, EVENT = 0xe0, STEPS = 10 };

enum order {
    FREE,
    BY_EVENT,
    BY_STREAM,
    BY_HOST,
    BY_QUERY,
    STREAMS_UNKNOWN,
    DEFAULT_BETWEEN,
    GROUPED
};

static void between(struct job *job, int rank, enum order order, uint64_t from, uint64_t to)
{
    if (order == BY_EVENT) {
        event_record(job, rank, EVENT, from);
        event_wait(job, rank, EVENT, to);
    } else if (order == BY_HOST) {
        wait_done(job, rank, API_cudaStreamSynchronize, from);
    } else if (order == DEFAULT_BETWEEN) {
        memset_async(job, rank, 0, 0x1000,
                     16); /* orders the two if the streams are blocking, which nobody saw */
    } else if (order == BY_QUERY) {
        job_record(job, rank, (struct record){.api = API_cudaStreamQuery, .stream = from});
    }
}

static void step(struct job *job, int rank, enum order order, bool turned, bool progress)
{
    uint64_t streams[] = {ONE, order == BY_STREAM ? ONE : TWO};
    if (order == GROUPED)
        group_start(job, rank);
    for (int i = 0; i < 2; i++) {
        bool second = (i == 1) != turned;
        if (i)
            between(job, rank, order, streams[!second], streams[second]);
        ALL_REDUCE(job, rank, second ? SECOND : FIRST, second ? 200 : 100,
                   .stream = streams[second], .no_progress = !progress);
    }
    if (order == GROUPED)
        group_end(job, rank);
}

/* Rank 2 has them the other way round in one step. The others' order and its own are as given. */
static struct job *turned_once(enum order others, enum order own, bool progress)
{
    struct job *job = job_new(RANKS);
    job_init(job, FIRST, 0, RANKS - 1);
    job_init(job, SECOND, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++)
        for (int i = 0; i < 2 && others < STREAMS_UNKNOWN; i++)
            stream_create(job, rank, i ? TWO : ONE, true);
    for (int i = 0; i < STEPS; i++) {
        for (int rank = 0; rank < RANKS; rank++)
            step(job, rank, rank == 2 ? own : others, rank == 2 && i == 4, progress);
        for (int rank = 0; rank < RANKS; rank++)
            wait_done(job, rank, API_cudaDeviceSynchronize, 0);
    }
    ticks(job, 1000);
    return job;
}

static void different_orders(void **state)
{
    (void)state;
    static const struct {
        enum order others, own;
        bool faulty;
    } cases[] = {
        {FREE, FREE, true},
        {FREE, BY_EVENT, true},
        {BY_EVENT, FREE, true},
        {BY_STREAM, FREE, true},
        {FREE, BY_HOST, true},
        {BY_QUERY, FREE, true},
        {STREAMS_UNKNOWN, STREAMS_UNKNOWN, true},
        {DEFAULT_BETWEEN, DEFAULT_BETWEEN, false},
        {GROUPED, GROUPED, false},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        struct job *job = turned_once(cases[i / 2].others, cases[i / 2].own, i % 2);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, cases[i / 2].faulty ? "DC204" : NULL);
        if (cases[i / 2].faulty) {
            assert_int_equal(found->certainty, POSSIBLE);
            assert_int_equal(found->severity, SEVERITY_WARNING);
            assert_int_equal(found->sides, 2);
            assert_true(!strcmp(found->ranks[0], "2") || !strcmp(found->ranks[1], "2"));
        }
        job_free(job);
    }
}

/* One order everywhere needs nothing between them; nor do communicators that share no two ranks. */
static void right_orders_are_none(void **state)
{
    (void)state;
    for (int order = FREE; order <= GROUPED; order++) {
        struct job *job = job_new(RANKS);
        job_init(job, FIRST, 0, RANKS - 1);
        job_init(job, SECOND, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS; rank++) {
            stream_create(job, rank, ONE, true);
            stream_create(job, rank, TWO, true);
        }
        for (int rank = 0; rank < RANKS; rank++) /* one rank far ahead of the others */
            for (int i = 0; i < STEPS; i++)
                step(job, rank, order, i % 3 == 0, true);
        for (int rank = 0; rank < RANKS; rank++)
            wait_done(job, rank, API_cudaDeviceSynchronize, 0);
        ticks(job, 1000);
        expect(job, NULL);
        job_free(job);
    }
}

static void halves_are_none(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    job_init(job, FIRST, 0, 1);
    job_init(job, SECOND, 1, 2);
    for (int rank = 0; rank < 3; rank++) {
        stream_create(job, rank, ONE, true);
        stream_create(job, rank, TWO, true);
    }
    for (int i = 0; i < STEPS; i++) {
        ALL_REDUCE(job, 0, FIRST, 1, .stream = ONE);
        ALL_REDUCE(job, 2, SECOND, 1, .stream = TWO);
        for (int k = 0; k < 2; k++) /* only rank 1 has both */
            ALL_REDUCE(job, 1, (i + k) % 2 ? FIRST : SECOND, 1, .stream = (i + k) % 2 ? ONE : TWO);
    }
    for (int rank = 0; rank < 3; rank++)
        wait_done(job, rank, API_cudaDeviceSynchronize, 0);
    ticks(job, 1000);
    expect(job, NULL);
    job_free(job);
}

/* What was foretold is reported as what came. */
static void a_hang_takes_its_place(void **state)
{
    (void)state;
    struct job *job = job_new(2);
    job_init(job, FIRST, 0, 1);
    job_init(job, SECOND, 0, 1);
    for (int rank = 0; rank < 2; rank++) {
        stream_create(job, rank, ONE, true);
        stream_create(job, rank, TWO, true);
        step(job, rank, FREE, rank, true);
    }
    ticks(job, 500);
    expect(job, "DC204");
    for (int rank = 0; rank < 2; rank++) {
        step(job, rank, BY_STREAM, rank, true);
        wait_enter(job, rank, API_cudaDeviceSynchronize, 0);
    }
    ticks(job, 1000);
    expect(job, "DC202");
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(different_orders),
        cmocka_unit_test(right_orders_are_none),
        cmocka_unit_test(halves_are_none),
        cmocka_unit_test(a_hang_takes_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
