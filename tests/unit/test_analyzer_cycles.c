/* Circles of waits: DC202 and DC203; each faulty job beside a correct one that looks like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define FIRST  UINT64_C(0xaaaa000000000001)
#define SECOND UINT64_C(0xbbbb000000000002)

enum { RANKS = 4, ONE = 0x10, TWO = 0x20, EVENT = 0xe0 };

static struct job *two_comms(int ranks)
{
    struct job *job = job_new(ranks);
    job_init(job, FIRST, 0, ranks - 1);
    job_init(job, SECOND, 0, ranks - 1);
    for (int rank = 0; rank < ranks; rank++) {
        stream_create(job, rank, ONE, true);
        stream_create(job, rank, TWO, true);
    }
    return job;
}

/* How the operations of the two communicators are ordered on a rank. */
enum order { ON_ONE_STREAM, BY_EVENT, BY_DEFAULT_STREAM, NOT_AT_ALL, BY_HOST };

static void issue_both(struct job *job, int rank, uint64_t first, uint64_t second, enum order order,
                       bool progress)
{
    uint64_t stream = order == BY_DEFAULT_STREAM ? 0x30 : ONE;
    if (order == BY_DEFAULT_STREAM)
        stream_create(job, rank, 0x30, false);
    ALL_REDUCE(job, rank, first, first == FIRST ? 100 : 200, .stream = stream,
               .no_progress = !progress);
    if (order == BY_EVENT) {
        event_record(job, rank, EVENT, ONE);
        event_wait(job, rank, EVENT, TWO);
    }
    if (order == BY_HOST)
        wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
    else
        ALL_REDUCE(job, rank, second, second == FIRST ? 100 : 200, .no_progress = !progress,
                   .stream = order == ON_ONE_STREAM       ? ONE
                             : order == BY_DEFAULT_STREAM ? 0
                                                          : TWO);
}

/* Three of four ranks agree: DC201, whose advice is that of the cycle as well. */
static void one_rank_crosses(void **state)
{
    (void)state;
    struct job *job = two_comms(RANKS);
    for (int rank = 0; rank < RANKS; rank++)
        issue_both(job, rank, rank == 2 ? SECOND : FIRST, rank == 2 ? FIRST : SECOND, BY_HOST,
                   true);
    ticks(job, 1000);
    const struct found *found = expect(job, "DC201");
    assert_string_equal(found->ranks[1], "2");
    assert_has(found->todo, "all communicators in one order");
    job_free(job);
}

/* A loop over cudaStreamQuery may give up: possible. One of a thread that does not use NCCL, as a
 * watchdog's, says nothing of where its rank is. */
static void query_loops(void **state)
{
    (void)state;
    for (int watchdog = 0; watchdog < 2; watchdog++) {
        struct job *job = two_comms(2);
        for (int rank = 0; rank < 2; rank++) {
            if (!watchdog || rank == 0)
                ALL_REDUCE(job, rank, rank ? SECOND : FIRST, 100, .stream = ONE);
            if (watchdog && rank == 1)
                job_thread(job, rank, 900);
            wait_enter(job, rank, API_cudaStreamQuery_loop, ONE);
        }
        ticks(job, 12000);
        const struct found *found = expect(job, watchdog ? "DC201" : "DC202");
        assert_int_equal(found->certainty, POSSIBLE);
        assert_has(found->where[watchdog ? 1 : 0],
                   watchdog ? "in no call of NCCL or CUDA" : "a loop over cudaStreamQuery");
        job_free(job);
    }
}

static void crossed_communicators(void **state)
{
    (void)state;
    static const enum order orders[] = {ON_ONE_STREAM, BY_EVENT, BY_DEFAULT_STREAM};
    for (size_t i = 0; i < 2 * 2 * 3; i++) {
        bool progress = i % 2, waits = i / 2 % 2;
        struct job *job = two_comms(RANKS);
        for (int rank = 0; rank < RANKS; rank++) {
            issue_both(job, rank, rank == 2 ? SECOND : FIRST, rank == 2 ? FIRST : SECOND,
                       orders[i / 4], progress);
            if (waits)
                wait_enter(job, rank, API_cudaDeviceSynchronize, 0);
        }
        uint64_t last_call = job_now(job);
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, "DC202");
        assert_int_equal(found->certainty, CERTAIN);
        assert_int_equal(found->sides, 2);
        assert_string_equal(found->ranks[0], "0-1,3");
        assert_string_equal(found->ranks[1], "2");
        assert_string_equal(found->call[0], "ncclAllReduce(count=100, float32, sum)");
        assert_has(found->where[0], "waits for rank 2: its call is queued behind ncclAllReduce");
        assert_has(found->where[1], "waits for rank 0: its call is queued behind ncclAllReduce");
        assert_true(found->seen_ns - last_call < 700000000);
        job_free(job);
    }
}

/* In one order, or with nothing between the two: no hang that could be proven. */
static void right_orders_are_none(void **state)
{
    (void)state;
    static const enum order orders[] = {ON_ONE_STREAM, BY_EVENT, BY_DEFAULT_STREAM, NOT_AT_ALL};
    for (int i = 0; i < 2 * 4; i++) {
        struct job *job = two_comms(RANKS);
        for (int rank = 0; rank < RANKS; rank++) {
            issue_both(job, rank, FIRST, SECOND, orders[i / 2], i % 2);
            wait_enter(job, rank, API_cudaDeviceSynchronize, 0);
        }
        ticks(job, 1000);
        expect(job, NULL);
        job_free(job);
    }
}

/* Two ranks, each waits on the host for its first. */
static void crossed_with_host_waits(void **state)
{
    (void)state;
    struct job *job = two_comms(2);
    issue_both(job, 0, FIRST, SECOND, BY_HOST, true);
    issue_both(job, 1, SECOND, FIRST, BY_HOST, true);
    ticks(job, 1000);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC202");
    assert_has(
        found->where[0],
        "waits for rank 1: it has not called it, it is in cudaStreamSynchronize and waits in "
        "ncclAllReduce(count=200, float32, sum) #0 of comm bbbb (2 ranks)");
    job_free(job);
}

static void name_comm(struct job *job, uint64_t comm, const char *name)
{
    struct record record = {.api = API_notice_comm_name};
    record.range.text = intern(job, 0, name);
    record.range.id = comm;
    job_record(job, 0, record);
}

/* The program's name of a communicator is in the sentence, with its id where two have it. */
static void named_communicators(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *called;
    } cases[] = {
        {"dp", NULL, "#0 of comm dp (2 ranks)"},
        {"dp", "tp", "#0 of comm dp (2 ranks)"},
        {"dp", "dp", "#0 of comm dp aaaa (2 ranks)"},
        {"", NULL, "#0 of comm aaaa (2 ranks)"},
        {"a\033[31m\n<b>\"", NULL, "#0 of comm a_[31m__b__ (2 ranks)"},
        {"a_name_of_23_characters", NULL, "#0 of comm a_name_of_23_characters (2 ranks)"},
        {"a_name_of_24_characters_", NULL, "#0 of comm a_name_of_24_charact... (2 ranks)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = two_comms(2);
        name_comm(job, FIRST, cases[i].first);
        if (cases[i].second)
            name_comm(job, SECOND, cases[i].second);
        issue_both(job, 0, FIRST, SECOND, BY_HOST, true);
        issue_both(job, 1, SECOND, FIRST, BY_HOST, true);
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, "DC202");
        assert_has(found->where[1], cases[i].called);
        job_free(job);
    }
}

/* Of two ranks one waits in an operation of one element and the other one in a buffer's: the
 * barrier was skipped. Two barriers, or two buffers, are two communicators in different orders. */
static void skipped_barrier_of_two_ranks(void **state)
{
    (void)state;
    static const struct {
        uint64_t count[2];
        const char *code;
    } cases[] = {{{1, 200}, "DC201"}, {{200, 1}, "DC201"}, {{1, 1}, "DC202"}, {{2, 200}, "DC202"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = two_comms(2);
        for (int rank = 0; rank < 2; rank++) {
            ALL_REDUCE(job, rank, rank ? SECOND : FIRST, cases[i].count[rank], .stream = ONE);
            wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
        }
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, cases[i].code);
        assert_int_equal(found->certainty, CERTAIN);
        assert_has(found->call[0], cases[i].count[0] == 200 && i < 2 ? "count=1," : "count=");
        job_free(job);
    }
}

/* A communicator's operations run one after the other, whatever their streams. */
static void one_communicator_on_two_streams(void **state)
{
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        struct job *job = two_comms(2);
        for (int rank = 0; rank < 2; rank++) {
            ALL_REDUCE(job, rank, FIRST, 1, .stream = ONE);
            ALL_REDUCE(job, rank, FIRST, 2, .stream = TWO);
        }
        issue(job, 0,
              (struct call){
                  .api = API_ncclSend, .comm = FIRST, .count = 4, .root = 1, .stream = ONE});
        ALL_REDUCE(job, 0, FIRST, 3, .stream = TWO);
        if (faulty) {
            ALL_REDUCE(job, 1, FIRST, 3, .stream = TWO);
            issue(job, 1,
                  (struct call){
                      .api = API_ncclRecv, .comm = FIRST, .count = 4, .root = 0, .stream = ONE});
        } else {
            issue(job, 1,
                  (struct call){
                      .api = API_ncclRecv, .comm = FIRST, .count = 4, .root = 0, .stream = ONE});
            ALL_REDUCE(job, 1, FIRST, 3, .stream = TWO);
        }
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, faulty ? "DC203" : NULL);
        if (faulty) {
            assert_has(found->what, " on comm ");
            assert_has(found->where[0], "an earlier one of the communicator on another stream");
        }
        job_free(job);
    }
}

/* The rank that did not what the others did is reported as missing, although its peers' next call
 * is queued behind. */
static void missing_rank_with_queued_work(void **state)
{
    (void)state;
    struct job *job = two_comms(RANKS);
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank != 3)
            ALL_REDUCE(job, rank, SECOND, 1, .stream = ONE);
        ALL_REDUCE(job, rank, FIRST, 1000, .stream = ONE);
        wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
    }
    ticks(job, 1000);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC201");
    assert_int_equal(found->comm, SECOND);
    assert_string_equal(found->ranks[1], "3");
    job_free(job);
}

/* A rank that skipped its group's operation is named, not the one that waits for it and has called
 * what all wait in. */
static void skipped_operation_of_a_subgroup(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    job_init(job, FIRST, 0, RANKS - 1);
    job_init(job, SECOND, 2, 3);
    for (int rank = 0; rank < RANKS; rank++) {
        stream_create(job, rank, ONE, true);
        if (rank == 2)
            ALL_REDUCE(job, rank, SECOND, 200, .stream = ONE);
        ALL_REDUCE(job, rank, FIRST, 100, .stream = ONE);
        wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
    }
    ticks(job, 1000);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC201");
    assert_int_equal(found->comm, SECOND);
    assert_string_equal(found->ranks[0], "2");
    assert_string_equal(found->ranks[1], "3");
    job_free(job);
}

static void transfer(struct job *job, int rank, uint16_t api, int peer)
{
    issue(job, rank,
          (struct call){.api = api, .comm = FIRST, .count = 8, .root = peer, .stream = ONE});
}

enum ring_order { ALL_SEND_FIRST, ALL_RECEIVE_FIRST, GROUPED, ODD_RECEIVE_FIRST, SEND_THEN_WAIT };

static struct job *ring(int ranks, enum ring_order how)
{
    struct job *job = two_comms(ranks);
    for (int rank = 0; rank < ranks; rank++) {
        int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
        bool receive_first = how == ALL_RECEIVE_FIRST || (how == ODD_RECEIVE_FIRST && rank % 2);
        if (how == GROUPED)
            group_start(job, rank);
        transfer(job, rank, receive_first ? API_ncclRecv : API_ncclSend,
                 receive_first ? left : right);
        if (how == SEND_THEN_WAIT) {
            wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
            continue;
        }
        transfer(job, rank, receive_first ? API_ncclSend : API_ncclRecv,
                 receive_first ? right : left);
        if (how == GROUPED)
            group_end(job, rank);
        wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
    }
    ticks(job, 1000);
    return job;
}

static void rings(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 12; ranks++)
        for (int how = ALL_SEND_FIRST; how <= SEND_THEN_WAIT; how++) {
            bool faulty = how != GROUPED && (how != ODD_RECEIVE_FIRST || ranks < 2);
            struct job *job = ring(ranks, how);
            struct verdict verdict;
            const struct found *found = expect_in(job, &verdict, faulty ? "DC203" : NULL);
            if (faulty) {
                assert_int_equal(found->certainty, CERTAIN);
                assert_int_equal(found->sides,
                                 ranks < FINDING_SIDES_MAX ? ranks : FINDING_SIDES_MAX);
            }
            job_free(job);
        }
}

/* AlltoAllv by sends, uneven, with messages to itself: all in one group. */
static void uneven_all_to_all_is_none(void **state)
{
    (void)state;
    struct job *job = two_comms(RANKS);
    for (int step = 0; step < 3; step++)
        for (int rank = 0; rank < RANKS; rank++) {
            group_start(job, rank);
            for (int peer = 0; peer < RANKS; peer++) {
                if ((rank + peer + step) % 3) /* nothing to send to some */
                    transfer(job, rank, API_ncclSend, peer);
                if ((rank + peer + step) % 3)
                    transfer(job, rank, API_ncclRecv, peer);
            }
            group_end(job, rank);
            if (step == 2)
                wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
        }
    ticks(job, 1000);
    expect(job, NULL);
    job_free(job);
}

/* A pipeline of halves: the second stage answers in another order than the first asks. */
static void pipeline_order(void **state)
{
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        struct job *job = two_comms(3);
        transfer(job, 0, API_ncclSend, 1);
        transfer(job, 0, API_ncclRecv, 1);
        transfer(job, 1, faulty ? API_ncclSend : API_ncclRecv, 0);
        transfer(job, 1, faulty ? API_ncclRecv : API_ncclSend, 0);
        transfer(job, 1, API_ncclSend, 2);
        transfer(job, 2, API_ncclRecv, 1);
        for (int rank = 0; rank < 3; rank++)
            wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, faulty ? "DC203" : NULL);
        if (faulty)
            assert_int_equal(found->sides, 2); /* rank 2 only waits for the circle */
        job_free(job);
    }
}

/* An aborted communicator holds nothing up. */
static void abort_ends_a_circle(void **state)
{
    (void)state;
    struct job *job = two_comms(2);
    for (int rank = 0; rank < 2; rank++) {
        issue_both(job, rank, rank ? SECOND : FIRST, rank ? FIRST : SECOND, ON_ONE_STREAM, true);
        comm_call_enter(job, rank, API_ncclCommAbort, FIRST);
        call_leave(job, rank);
        comm_call_enter(job, rank, API_ncclCommAbort, SECOND);
        call_leave(job, rank);
    }
    ticks(job, 1000);
    expect(job, NULL);
    job_free(job);
}

struct tree {
    char text[2048];
    int lines, cycles;
};

static void draw_line(void *context, const struct wait_view *wait)
{
    struct tree *tree = context;
    size_t used = strlen(tree->text);
    snprintf(tree->text + used, sizeof tree->text - used, "%*s%s%s\n", 2 * wait->depth, "",
             wait->text, wait->again ? " (again)" : "");
    tree->lines++;
    tree->cycles += wait->in_cycle;
}

static void draw_tree(struct job *job, int ranks, struct tree *tree)
{
    struct analyzer *analyzer = analyzer_new(NULL);
    for (int i = 0; i < ranks; i++) {
        struct process_info info = {
            .pid = 1000 + i, .rank = i, .world_size = ranks, .host = "a", .boot_id = "b"};
        assert_int_equal(analyzer_add_process(analyzer, i, &info), 0);
    }
    struct record record;
    int rank;
    for (size_t i = 0; job_event(job, i, &rank, &record); i++)
        assert_int_equal(analyzer_feed(analyzer, rank < 0 ? 0 : rank, &record), 0);
    assert_int_equal(analyzer_visit_waits(analyzer, draw_line, tree), 0);
    analyzer_free(analyzer);
}

static void waits_as_a_tree(void **state)
{
    (void)state;
    struct job *job = two_comms(3);
    for (int rank = 0; rank < 3; rank++) {
        issue_both(job, rank, rank == 2 ? SECOND : FIRST, rank == 2 ? FIRST : SECOND,
                   rank ? ON_ONE_STREAM : BY_HOST, true);
        if (rank)
            wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
    }
    ticks(job, 1000);
    struct tree tree = {0};
    draw_tree(job, 3, &tree);
    assert_string_equal(
        tree.text,
        "ranks 0-1 wait in ncclAllReduce(count=100, float32, sum) #0 of comm aaaa (3 ranks)\n"
        "  rank 2 has called it, behind another operation on its stream\n"
        "    rank 2 waits in ncclAllReduce(count=200, float32, sum) #0 of comm bbbb (3 ranks)\n"
        "      rank 0 has not called it: in cudaStreamSynchronize\n"
        "        ranks 0-1 wait in ncclAllReduce(count=100, float32, sum) #0 of comm aaaa (3 "
        "ranks) (again)\n"
        "      rank 1 has called it, behind another operation on its stream\n"
        "        ranks 0-1 wait in ncclAllReduce(count=100, float32, sum) #0 of comm aaaa (3 "
        "ranks) "
        "(again)\n");
    assert_int_equal(tree.lines, 7);
    assert_int_equal(tree.cycles, 4);
    job_free(job);
}

/* Ranks that are missing in the same and wait for the same are one line, whatever their number. */
static void missing_ranks_as_one_line(void **state)
{
    (void)state;
    struct job *job = two_comms(RANKS);
    for (int rank = 0; rank < RANKS; rank++) {
        ALL_REDUCE(job, rank, rank == 3 ? SECOND : FIRST, 100, .stream = ONE);
        wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
    }
    ticks(job, 1000);
    struct tree tree = {0};
    draw_tree(job, RANKS, &tree);
    assert_has(tree.text, "rank 3 waits in ncclAllReduce");
    assert_has(tree.text, "  ranks 0-2 have not called it: in cudaStreamSynchronize\n");
    assert_has(tree.text, "  rank 3 has not called it: in cudaStreamSynchronize\n");
    assert_int_equal(tree.lines, 5);
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crossed_communicators),
        cmocka_unit_test(right_orders_are_none),
        cmocka_unit_test(crossed_with_host_waits),
        cmocka_unit_test(named_communicators),
        cmocka_unit_test(skipped_barrier_of_two_ranks),
        cmocka_unit_test(skipped_operation_of_a_subgroup),
        cmocka_unit_test(one_communicator_on_two_streams),
        cmocka_unit_test(missing_rank_with_queued_work),
        cmocka_unit_test(rings),
        cmocka_unit_test(uneven_all_to_all_is_none),
        cmocka_unit_test(pipeline_order),
        cmocka_unit_test(one_rank_crosses),
        cmocka_unit_test(query_loops),
        cmocka_unit_test(abort_ends_a_circle),
        cmocka_unit_test(waits_as_a_tree),
        cmocka_unit_test(missing_ranks_as_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
