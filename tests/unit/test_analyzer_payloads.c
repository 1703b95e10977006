/* Hashes of what operations send and receive: DC308, DC309. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/loop/payloads.h"
#include "analyzer/model/comm.h"
#include "payload_job.h"

static void results_are_alike(void **state)
{
    (void)state;
    struct job *job = payload_job_new();
    for (uint64_t number = 0; number < 20; number++)
        for (int rank = 0; rank < RANKS; rank++)
            payload_job_reduce(job, rank, number, 1000 * number + (unsigned)rank + 1, 7 + number);
    payload_job_finish(job);
    expect(job, NULL);
    job_free(job);
}

static void a_rank_has_other_bytes(void **state)
{
    (void)state;
    struct job *job = payload_job_new();
    for (uint64_t number = 0; number < 20; number++)
        for (int rank = 0; rank < RANKS; rank++)
            payload_job_reduce(job, rank, number, 1000 * number + (unsigned)rank + 1,
                               number % 5 == 3 && rank == 2 ? 99 : 7 + number);
    payload_job_finish(job);
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
        struct job *job = payload_job_new();
        for (int rank = 0; rank < RANKS; rank++) {
            issue(job, rank, (struct call){.api = cases[i].api, .comm = WORLD, .count = COUNT});
            payload_job_tell(job, rank,
                             (struct reported){.api = cases[i].api,
                                               .hash = 100 + (unsigned)rank,
                                               .what = HASH_RECV_AFTER,
                                               .expects = 1 << HASH_RECV_AFTER});
        }
        payload_job_finish(job);
        expect(job, cases[i].code);
        job_free(job);
    }
    struct job *job = payload_job_new();
    for (int rank = 0; rank < RANKS; rank++) {
        ALL_REDUCE(job, rank, WORLD, COUNT - (rank == 1));
        payload_job_tell(job, rank,
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
        struct job *job = payload_job_new();
        for (uint64_t number = 0; number < 200; number++)
            for (int rank = 0; rank < RANKS; rank++) {
                ALL_REDUCE(job, rank, WORLD, COUNT);
                if (number == 5 && rank == 3)
                    continue;
                payload_job_tell(
                    job, rank,
                    (struct reported){.number = number,
                                      .hash = differs && number == 5 && rank == 0 ? 5 : 7,
                                      .what = HASH_RECV_AFTER,
                                      .expects = 1 << HASH_RECV_AFTER});
            }
        uint64_t last = job_now(job);
        payload_job_finish(job);
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
    struct job *job = payload_job_new();
    for (int rank = 0; rank < RANKS; rank++) {
        payload_job_reduce(job, rank, 0, 11, 7);
        payload_job_tell(
            job, rank,
            (struct reported){.hash = 11, .what = HASH_SEND_BEFORE, .expects = IN_PLACE});
        payload_job_tell(
            job, rank, (struct reported){.hash = 8, .what = HASH_RECV_AFTER, .expects = IN_PLACE});
    }
    payload_job_finish(job);
    expect(job, NULL);
    job_free(job);
}

static void sent_and_changed(void **state)
{
    (void)state;
    struct job *job = payload_job_new();
    for (uint64_t number = 0; number < 6; number++)
        for (int rank = 0; rank < RANKS; rank++) {
            ALL_REDUCE(job, rank, WORLD, COUNT);
            uint64_t before = 50 * number + (unsigned)rank + 1,
                     after = before + (number >= 2 && rank % 2);
            payload_job_tell(job, rank,
                             (struct reported){.number = number,
                                               .hash = before,
                                               .what = HASH_SEND_BEFORE,
                                               .expects = OUT_OF_PLACE});
            payload_job_tell(
                job, rank,
                (struct reported){
                    .number = number, .hash = 7, .what = HASH_RECV_AFTER, .expects = OUT_OF_PLACE});
            payload_job_tell(job, rank,
                             (struct reported){.number = number,
                                               .hash = after,
                                               .what = HASH_SEND_AFTER,
                                               .expects = OUT_OF_PLACE});
        }
    payload_job_finish(job);
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
    struct job *job = payload_job_new();
    for (int step = 0; step < 3; step++) {
        struct record tick = {.api = API_notice_blind};
        uint64_t serial = job_record(job, 1, tick) + 1;
        issue(job, 1, (struct call){.api = API_ncclSend, .comm = WORLD, .count = COUNT, .root = 2});
        issue(job, 2, (struct call){.api = API_ncclRecv, .comm = WORLD, .count = COUNT, .root = 1});
        const uint8_t both = 1 << HASH_SEND_BEFORE | 1 << HASH_SEND_AFTER;
        payload_job_tell(job, 1,
                         (struct reported){.api = API_ncclSend,
                                           .number = (uint64_t)step,
                                           .serial = serial,
                                           .hash = 3,
                                           .what = HASH_SEND_BEFORE,
                                           .expects = both});
        payload_job_tell(job, 1,
                         (struct reported){.api = API_ncclSend,
                                           .number = (uint64_t)step,
                                           .serial = serial,
                                           .hash = step == 1 ? 4 : 3,
                                           .what = HASH_SEND_AFTER,
                                           .expects = both});
    }
    payload_job_finish(job);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC309");
    assert_int_equal(found->number, 1);
    assert_string_equal(found->ranks[0], "1");
    job_free(job);
}

static void note_code(void *context, const struct finding *finding)
{
    snprintf(context, 8, "%s", code_name(finding->code));
}

/* A node's collector sees its own ranks only: they are compared, some operations later. */
static void ranks_of_other_hosts(void **state)
{
    (void)state;
    struct job *job = payload_job_new();
    for (uint64_t number = 0; number < 200; number++)
        for (int rank = 0; rank < 2; rank++)
            payload_job_reduce(job, rank, number, 1000 * number + (unsigned)rank + 1,
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
    struct job *job = payload_job_new();
    for (uint64_t number = 0; number < 5000; number++)
        for (int rank = 0; rank < RANKS; rank++) {
            if (rank == 3 && number > 10)
                continue;
            ALL_REDUCE(job, rank, WORLD, COUNT);
            if (rank != 2)
                payload_job_tell(job, rank,
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
        if (comm && comm->slot.payloads && comm->slot.payloads->count > most)
            most = comm->slot.payloads->count;
    }
    assert_in_range(most, PAYLOADS_MIN, PAYLOADS_MAX);
    analyzer_free(analyzer);
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_alike), cmocka_unit_test(a_rank_has_other_bytes),
        cmocka_unit_test(what_may_differ),   cmocka_unit_test(a_hash_is_lost),
        cmocka_unit_test(reported_twice),    cmocka_unit_test(sent_and_changed),
        cmocka_unit_test(a_message_changed), cmocka_unit_test(ranks_of_other_hosts),
        cmocka_unit_test(memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
