/* Payload hashes: DC308, DC309, DC501, DC502, DC503. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/model/comm.h"
#include "analyzer/loop/payloads.h"
#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum {
    RANKS = 4,
    COUNT = 1024,
    IN_PLACE = 1 << HASH_SEND_BEFORE | 1 << HASH_RECV_AFTER,
    OUT_OF_PLACE = IN_PLACE | 1 << HASH_SEND_AFTER
};

static struct job *hashing_job(void)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++) {
        struct record record = {.api = API_notice_hashing};
        record.hashing.entries = RING_HASHES;
        job_record(job, rank, record);
    }
    return job;
}

static void finish(struct job *job)
{
    for (int rank = 0; rank < RANKS; rank++) {
        gpu_done(job, rank, WORLD, 0);
        comm_call_enter(job, rank, API_ncclCommDestroy, WORLD);
        call_leave(job, rank);
    }
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
}

/* What one rank's GPU tells; a field of 0 is left out where it can be. */
struct reported {
    uint16_t api;
    uint64_t number, hash, serial, name;
    enum hash_what what;
    uint8_t expects;
    uint32_t nans, infs;
    bool uniform;
};
static void tell(struct job *job, int rank, struct reported reported)
{
    struct record record = {.api = API_notice_hash};
    record.hash.comm = WORLD;
    record.hash.number = reported.number;
    record.hash.hash = reported.hash;
    record.hash.nans = reported.nans;
    record.hash.infs = reported.infs;
    record.hash.bytes = 4 * COUNT;
    record.hash.serial = reported.serial;
    record.hash.name = reported.name;
    record.hash.rank = rank;
    record.hash.what = (uint8_t)reported.what;
    record.hash.flags =
        (uint8_t)(reported.expects << HASH_EXPECTS | (reported.uniform ? HASH_UNIFORM : 0));
    record.hash.api = reported.api ? reported.api : API_ncclAllReduce;
    job_record(job, rank, record);
}

/* An operation in place: its hashes before and after. */
static void reduced(struct job *job, int rank, uint64_t number, uint64_t before, uint64_t after)
{
    ALL_REDUCE(job, rank, WORLD, COUNT);
    tell(job, rank,
         (struct reported){
             .number = number, .hash = before, .what = HASH_SEND_BEFORE, .expects = IN_PLACE});
    tell(job, rank,
         (struct reported){
             .number = number, .hash = after, .what = HASH_RECV_AFTER, .expects = IN_PLACE});
}

static void results_are_alike(void **state)
{
    (void)state;
    struct job *job = hashing_job();
    for (uint64_t number = 0; number < 20; number++)
        for (int rank = 0; rank < RANKS; rank++)
            reduced(job, rank, number, 1000 * number + (unsigned)rank + 1, 7 + number);
    finish(job);
    expect(job, NULL);
    job_free(job);
}

static void a_rank_has_other_bytes(void **state)
{
    (void)state;
    struct job *job = hashing_job();
    for (uint64_t number = 0; number < 20; number++)
        for (int rank = 0; rank < RANKS; rank++)
            reduced(job, rank, number, 1000 * number + (unsigned)rank + 1,
                    number % 5 == 3 && rank == 2 ? 99 : 7 + number);
    finish(job);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC308");
    assert_int_equal(found->certainty, CERTAIN);
    assert_int_equal(found->number, 3);
    assert_int_equal(found->times, 4);
    assert_int_equal(found->sides, 2);
    assert_string_equal(found->ranks[0], "0-1,3");
    assert_string_equal(found->ranks[1], "2");
    assert_non_null(strstr(found->what, "ranks 0-1,3 hold the same bytes and rank 2 others"));
    job_free(job);
}

/* Kinds whose results differ by rank, and calls that differ, are not compared. */
static void what_may_differ(void **state)
{
    (void)state;
    static const struct {
        uint16_t api;
        const char *code;
    } cases[] = {
        {API_ncclAllReduce, "DC308"}, {API_ncclAllGather, "DC308"},  {API_ncclBroadcast, "DC308"},
        {API_ncclBcast, "DC308"},     {API_ncclReduceScatter, NULL}, {API_ncclAlltoAll, NULL},
        {API_ncclScatter, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = hashing_job();
        for (int rank = 0; rank < RANKS; rank++) {
            issue(job, rank, (struct call){.api = cases[i].api, .comm = WORLD, .count = COUNT});
            tell(job, rank,
                 (struct reported){.api = cases[i].api,
                                   .hash = 100 + (unsigned)rank,
                                   .what = HASH_RECV_AFTER,
                                   .expects = 1 << HASH_RECV_AFTER});
        }
        finish(job);
        expect(job, cases[i].code);
        job_free(job);
    }
    struct job *job = hashing_job();
    for (int rank = 0; rank < RANKS; rank++) {
        ALL_REDUCE(job, rank, WORLD, COUNT - (rank == 1));
        tell(job, rank,
             (struct reported){.hash = 100 + (unsigned)rank,
                               .what = HASH_RECV_AFTER,
                               .expects = 1 << HASH_RECV_AFTER});
    }
    expect(job, "DC102");
    job_free(job);
}

/* What one rank lost is not made up: the others are compared when it is clear that nothing comes.
 */
static void a_hash_is_lost(void **state)
{
    (void)state;
    for (int differs = 0; differs < 2; differs++) {
        struct job *job = hashing_job();
        for (uint64_t number = 0; number < 200; number++)
            for (int rank = 0; rank < RANKS; rank++) {
                ALL_REDUCE(job, rank, WORLD, COUNT);
                if (number == 5 && rank == 3)
                    continue;
                tell(job, rank,
                     (struct reported){.number = number,
                                       .hash = differs && number == 5 && rank == 0 ? 5 : 7,
                                       .what = HASH_RECV_AFTER,
                                       .expects = 1 << HASH_RECV_AFTER});
            }
        uint64_t last = job_now(job);
        finish(job);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, differs ? "DC308" : NULL);
        if (differs) {
            assert_string_equal(found->ranks[0], "1-2");
            assert_string_equal(found->ranks[1], "0");
            assert_true(found->seen_ns < last);
        }
        job_free(job);
    }
}

/* A collector that was killed tells again what it had reported. */
static void reported_twice(void **state)
{
    (void)state;
    struct job *job = hashing_job();
    for (int rank = 0; rank < RANKS; rank++) {
        reduced(job, rank, 0, 11, 7);
        tell(job, rank,
             (struct reported){.hash = 11, .what = HASH_SEND_BEFORE, .expects = IN_PLACE});
        tell(job, rank, (struct reported){.hash = 8, .what = HASH_RECV_AFTER, .expects = IN_PLACE});
    }
    finish(job);
    expect(job, NULL);
    job_free(job);
}

static void sent_and_changed(void **state)
{
    (void)state;
    struct job *job = hashing_job();
    for (uint64_t number = 0; number < 6; number++)
        for (int rank = 0; rank < RANKS; rank++) {
            ALL_REDUCE(job, rank, WORLD, COUNT);
            uint64_t before = 50 * number + (unsigned)rank + 1,
                     after = before + (number >= 2 && rank % 2);
            tell(job, rank,
                 (struct reported){.number = number,
                                   .hash = before,
                                   .what = HASH_SEND_BEFORE,
                                   .expects = OUT_OF_PLACE});
            tell(
                job, rank,
                (struct reported){
                    .number = number, .hash = 7, .what = HASH_RECV_AFTER, .expects = OUT_OF_PLACE});
            tell(job, rank,
                 (struct reported){.number = number,
                                   .hash = after,
                                   .what = HASH_SEND_AFTER,
                                   .expects = OUT_OF_PLACE});
        }
    finish(job);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC309");
    assert_int_equal(found->certainty, CERTAIN);
    assert_int_equal(found->number, 2);
    assert_int_equal(found->times, 8);
    assert_string_equal(found->ranks[0], "1,3");
    job_free(job);
}

/* Messages are numbered per peer, so their hashes go by the serial of their call. */
static void a_message_changed(void **state)
{
    (void)state;
    struct job *job = hashing_job();
    for (int step = 0; step < 3; step++) {
        struct record tick = {.api = API_notice_blind};
        uint64_t serial = job_record(job, 1, tick) + 1;
        issue(job, 1, (struct call){.api = API_ncclSend, .comm = WORLD, .count = COUNT, .root = 2});
        issue(job, 2, (struct call){.api = API_ncclRecv, .comm = WORLD, .count = COUNT, .root = 1});
        const uint8_t both = 1 << HASH_SEND_BEFORE | 1 << HASH_SEND_AFTER;
        tell(job, 1,
             (struct reported){.api = API_ncclSend,
                               .number = (uint64_t)step,
                               .serial = serial,
                               .hash = 3,
                               .what = HASH_SEND_BEFORE,
                               .expects = both});
        tell(job, 1,
             (struct reported){.api = API_ncclSend,
                               .number = (uint64_t)step,
                               .serial = serial,
                               .hash = step == 1 ? 4 : 3,
                               .what = HASH_SEND_AFTER,
                               .expects = both});
    }
    finish(job);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC309");
    assert_int_equal(found->number, 1);
    assert_string_equal(found->ranks[0], "1");
    job_free(job);
}

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
            tell(job, rank,
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
        struct job *job = hashing_job();
        send_gradients(job, &cases[i]);
        finish(job);
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
    tell(job, rank,
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
    struct job *job = hashing_job();
    for (uint64_t number = 0; number < 10; number++)
        for (int rank = 0; rank < RANKS; rank++)
            nonfinite_op(job, number, rank, API_ncclAllReduce,
                         number == 4  ? rank == 2 ? 3 : 0
                         : number > 4 ? COUNT
                                      : 0,
                         0, REDOP_SUM);
    finish(job);
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
        struct job *job = hashing_job();
        for (int rank = 0; rank < RANKS; rank++)
            nonfinite_op(job, 0, rank, cases[i].api, rank == 1 ? cases[i].nans : 0, rank == 1,
                         cases[i].redop);
        finish(job);
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
        struct job *job = hashing_job();
        for (uint64_t number = 0; number <= (uint64_t)later; number++)
            for (int rank = 0; rank < RANKS; rank++)
                nonfinite_op(job, number, rank, API_ncclAllReduce, 0, number == 0 && rank == 1,
                             REDOP_SUM);
        finish(job);
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
    tell(job, rank,
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
        struct job *job = hashing_job();
        uint64_t weight[RANKS], bias[RANKS];
        for (int rank = 0; rank < RANKS; rank++) {
            weight[rank] = intern(job, rank, "weight");
            bias[rank] = intern(job, rank, "bias");
        }
        for (uint64_t step = 0; step < 10; step++)
            for (int rank = 0; rank < RANKS; rank++) {
                reduced(job, rank, step, 1000 * step + (unsigned)rank + 1, 7 + step);
                announce(job, rank, weight[rank], step, 50 + step);
                announce(job, rank, bias[rank], step,
                         60 + step + (rank == 3 && step >= (uint64_t)since ? 100 : 0));
            }
        finish(job);
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

static void note_code(void *context, const struct finding *finding)
{
    snprintf(context, 8, "%s", finding->code);
}

/* A node's collector sees its own ranks only: they are compared, some operations later. */
static void ranks_of_other_hosts(void **state)
{
    (void)state;
    struct job *job = hashing_job();
    for (uint64_t number = 0; number < 200; number++)
        for (int rank = 0; rank < 2; rank++)
            reduced(job, rank, number, 1000 * number + (unsigned)rank + 1,
                    number == 50 && rank == 1 ? 99 : 7);
    char code[8] = "";
    const struct analyzer_options options = {.on_finding = note_code, .context = code};
    struct analyzer *analyzer = analyzer_new(&options);
    struct process_info info = {.pid = 1, .world_size = RANKS};
    struct record record;
    int rank;
    for (info.rank = 0; info.rank < 2; info.rank++)
        assert_int_equal(analyzer_add_process(analyzer, info.rank, &info), 0);
    for (size_t i = 0; job_event(job, i, &rank, &record); i++)
        if (rank >= 0 && rank < 2)
            assert_int_equal(analyzer_feed(analyzer, rank, &record), 0);
    assert_string_equal(code, "DC308");
    analyzer_free(analyzer);
    job_free(job);
}

/* However far a rank that tells nothing is behind, what is kept stays bounded. */
static void memory_is_bounded(void **state)
{
    (void)state;
    struct job *job = hashing_job();
    for (uint64_t number = 0; number < 5000; number++)
        for (int rank = 0; rank < RANKS; rank++) {
            if (rank == 3 && number > 10)
                continue;
            ALL_REDUCE(job, rank, WORLD, COUNT);
            if (rank != 2)
                tell(job, rank,
                     (struct reported){.number = number,
                                       .hash = 7,
                                       .what = HASH_RECV_AFTER,
                                       .expects = 1 << HASH_RECV_AFTER});
        }
    struct analyzer *analyzer = analyzer_new(NULL);
    struct process_info info = {.pid = 1, .world_size = RANKS};
    struct record record;
    int rank;
    for (rank = 0; rank < RANKS; rank++) {
        info.rank = rank;
        assert_int_equal(analyzer_add_process(analyzer, rank, &info), 0);
    }
    uint32_t most = 0;
    for (size_t i = 0; job_event(job, i, &rank, &record); i++) {
        assert_int_equal(analyzer_feed(analyzer, rank < 0 ? 0 : rank, &record), 0);
        struct comm *comm = comm_find(analyzer, WORLD);
        if (comm && comm->payloads && comm->payloads->count > most)
            most = comm->payloads->count;
    }
    assert_in_range(most, PAYLOADS_MIN, PAYLOADS_MAX);
    analyzer_free(analyzer);
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_alike),    cmocka_unit_test(a_rank_has_other_bytes),
        cmocka_unit_test(what_may_differ),      cmocka_unit_test(a_hash_is_lost),
        cmocka_unit_test(reported_twice),       cmocka_unit_test(sent_and_changed),
        cmocka_unit_test(a_message_changed),    cmocka_unit_test(ranks_compute_the_same),
        cmocka_unit_test(nan_enters),           cmocka_unit_test(infinity_by_kind),
        cmocka_unit_test(overflow_is_skipped),  cmocka_unit_test(replicas_drift_apart),
        cmocka_unit_test(ranks_of_other_hosts), cmocka_unit_test(memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
