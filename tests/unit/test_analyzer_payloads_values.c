/* What hashes say of the values: equal gradients, NaN and Inf, replicas (DC501, DC502, DC503). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "payload_job.h"

/* Sends of `operations` reductions; `seed` says which ranks compute the same. */
struct gradients {
    unsigned operations;
    unsigned seed[RANKS];
    uint64_t count;
    int type, redop;
    bool uniform, repeated, differ_later;
    uint32_t nans;
    const char *code, *ranks[2];
};
static void send_gradients(struct job *job, const struct gradients *g)
{
    for (uint64_t number = 0; number < g->operations; number++)
        for (int rank = 0; rank < RANKS; rank++) {
            bool late = g->differ_later && number + 3 > g->operations;
            uint64_t hash = (g->repeated ? 0 : 100 * number) +
                            (late ? 50 + (unsigned)rank : g->seed[rank]) + 1;
            ALL_REDUCE(job, rank, WORLD, g->count, .type = g->type, .redop = g->redop);
            payload_job_tell(job, rank,
                             (struct reported){.number = number,
                                               .hash = hash,
                                               .what = HASH_SEND_BEFORE,
                                               .uniform = g->uniform,
                                               .expects = 1 << HASH_SEND_BEFORE});
        }
}

static void ranks_compute_the_same(void **state)
{
    (void)state;
    static const struct gradients cases[] = {
        {.operations = 16, .seed = {5, 5, 5, 5}, .count = 256, .code = "DC501", .ranks = {"0-3"}},
        {.operations = 40,
         .seed = {5, 5, 5, 5},
         .count = 256,
         .redop = REDOP_AVG,
         .code = "DC501",
         .ranks = {"0-3"}},
        {.operations = 40, .seed = {5, 6, 5, 7}, .count = COUNT, .code = "DC501", .ranks = {"0,2"}},
        {.operations = 40,
         .seed = {5, 6, 6, 5},
         .count = COUNT,
         .code = "DC501",
         .ranks = {"0,3", "1-2"}},
        {.operations = 15, .seed = {5, 5, 5, 5}, .count = 256},
        {.operations = 40, .seed = {5, 6, 7, 8}, .count = 256},
        {.operations = 40, .seed = {5, 5, 5, 5}, .count = 255},
        {.operations = 40, .seed = {5, 5, 5, 5}, .count = 256, .type = TYPE_INT32},
        {.operations = 40, .seed = {5, 5, 5, 5}, .count = 256, .redop = REDOP_MAX},
        {.operations = 40, .seed = {5, 5, 5, 5}, .count = 256, .uniform = true},
        {.operations = 40, .seed = {5, 5, 5, 5}, .count = 256, .repeated = true},
        {.operations = 40, .seed = {5, 5, 5, 5}, .count = 256, .differ_later = true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = payload_job_new();
        send_gradients(job, &cases[i]);
        payload_job_finish(job);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, cases[i].code);
        if (cases[i].code) {
            assert_int_equal(found->certainty, POSSIBLE);
            assert_int_equal(found->number, 15);
            assert_string_equal(found->ranks[0], cases[i].ranks[0]);
            if (cases[i].ranks[1])
                assert_string_equal(found->ranks[1], cases[i].ranks[1]);
        }
        job_free(job);
    }
}

static void nonfinite_op(struct job *job, uint64_t number, int rank, uint16_t api, uint32_t nans,
                         uint32_t infs, int redop)
{
    issue(job, rank, (struct call){.api = api, .comm = WORLD, .count = COUNT, .redop = redop});
    payload_job_tell(job, rank,
                     (struct reported){.api = api,
                                       .number = number,
                                       .hash = 10 * number + (unsigned)rank + 1,
                                       .nans = nans,
                                       .infs = infs,
                                       .what = HASH_SEND_BEFORE,
                                       .expects = 1 << HASH_SEND_BEFORE});
}

/* Rank 2 brings it, one operation later all have it. */
static void nan_enters(void **state)
{
    (void)state;
    struct job *job = payload_job_new();
    for (uint64_t number = 0; number < 10; number++)
        for (int rank = 0; rank < RANKS; rank++)
            nonfinite_op(job, number, rank, API_ncclAllReduce,
                         number == 4  ? rank == 2 ? 3 : 0
                         : number > 4 ? COUNT
                                      : 0,
                         0, REDOP_SUM);
    payload_job_finish(job);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC502");
    assert_int_equal(found->certainty, CERTAIN);
    assert_int_equal(found->number, 4);
    assert_int_equal(found->times, 6);
    assert_string_equal(found->ranks[0], "2");
    assert_string_equal(found->ranks[1], "0-1,3");
    assert_non_null(strstr(found->what, "(3 NaN, 0 Inf)"));
    job_free(job);
}

static void infinity_by_kind(void **state)
{
    (void)state;
    static const struct {
        uint16_t api;
        uint32_t nans;
        int redop;
        const char *code;
    } cases[] = {
        {API_ncclAllReduce, 0, REDOP_SUM, "DC502"}, {API_ncclReduceScatter, 0, REDOP_AVG, "DC502"},
        {API_ncclAllReduce, 0, REDOP_MAX, NULL},    {API_ncclBroadcast, 0, REDOP_NONE, NULL},
        {API_ncclAllGather, 0, REDOP_NONE, NULL},   {API_ncclBroadcast, 1, REDOP_NONE, "DC502"},
        {API_ncclAllReduce, 1, REDOP_MAX, "DC502"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = payload_job_new();
        for (int rank = 0; rank < RANKS; rank++)
            nonfinite_op(job, 0, rank, cases[i].api, rank == 1 ? cases[i].nans : 0, rank == 1,
                         cases[i].redop);
        payload_job_finish(job);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, cases[i].code);
        if (cases[i].code)
            assert_int_equal(found->certainty, cases[i].nans ? CERTAIN : POSSIBLE);
        job_free(job);
    }
}

/* A loss scaler's overflow: once, then all is finite again. */
static void overflow_is_skipped(void **state)
{
    (void)state;
    for (int later = 0; later < 20; later += 7) {
        struct job *job = payload_job_new();
        for (uint64_t number = 0; number <= (uint64_t)later; number++)
            for (int rank = 0; rank < RANKS; rank++)
                nonfinite_op(job, number, rank, API_ncclAllReduce, 0, number == 0 && rank == 1,
                             REDOP_SUM);
        payload_job_finish(job);
        expect(job, later < 8 ? "DC502" : NULL);
        job_free(job);
    }
}

static void announce(struct job *job, int rank, uint64_t name, uint64_t number, uint64_t hash)
{
    struct record record = {.api = API_ddpcheck_hash, .stack = 0x9000};
    record.named.comm = WORLD;
    record.named.number = number;
    record.named.name = name;
    record.named.bytes = 4 * COUNT;
    record.named.rank = rank;
    uint64_t serial = job_record(job, rank, record);
    payload_job_tell(job, rank,
                     (struct reported){.api = API_ddpcheck_hash,
                                       .number = number,
                                       .name = name,
                                       .serial = serial,
                                       .hash = hash,
                                       .what = HASH_NAMED,
                                       .expects = 1 << HASH_NAMED});
}

static void replicas_drift_apart(void **state)
{
    (void)state;
    for (int since = 0; since < 12; since += 5) {
        struct job *job = payload_job_new();
        uint64_t weight[RANKS], bias[RANKS];
        for (int rank = 0; rank < RANKS; rank++) {
            weight[rank] = intern(job, rank, "weight");
            bias[rank] = intern(job, rank, "bias");
        }
        for (uint64_t step = 0; step < 10; step++)
            for (int rank = 0; rank < RANKS; rank++) {
                payload_job_reduce(job, rank, step, 1000 * step + (unsigned)rank + 1, 7 + step);
                announce(job, rank, weight[rank], step, 50 + step);
                announce(job, rank, bias[rank], step,
                         60 + step + (rank == 3 && step >= (uint64_t)since ? 100 : 0));
            }
        payload_job_finish(job);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, since < 10 ? "DC503" : NULL);
        if (since < 10) {
            char equal[64];
            assert_int_equal(found->certainty, CERTAIN);
            assert_int_equal(found->times, 10 - since);
            assert_string_equal(found->ranks[0], "0-2");
            assert_string_equal(found->ranks[1], "3");
            assert_non_null(strstr(found->what, "ddpcheck_hash(\"bias\") #"));
            snprintf(equal, sizeof equal, "found before collective #%d of", since + 1);
            assert_non_null(strstr(found->what, equal));
        }
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_compute_the_same), cmocka_unit_test(nan_enters),
        cmocka_unit_test(infinity_by_kind),       cmocka_unit_test(overflow_is_skipped),
        cmocka_unit_test(replicas_drift_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
