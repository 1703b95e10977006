/* When the waits of a job are judged: once for a round of its hosts' ticks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "analyzer/engine.h"
#include "analyzer/hang/waits.h"

enum { HOSTS = 3 };

static int judged;

static void count_judgement(struct analyzer *analyzer, const struct event *event)
{
    (void)analyzer, (void)event;
    judged++;
}

/* A process on each of `hosts` hosts. */
static struct analyzer *make_analyzer(int hosts)
{
    struct analyzer *analyzer = analyzer_new(NULL);
    assert_non_null(analyzer);
    analyzer->handlers[EVENT_WAITS][0] = count_judgement;
    analyzer->handlers[EVENT_WAITS][1] = NULL;
    for (int i = 0; i < hosts; i++) {
        struct process_info info = {.pid = 100 + i, .rank = i, .world_size = hosts};
        snprintf(info.boot_id, sizeof info.boot_id, "host-%d", i);
        assert_int_equal(analyzer_add_process(analyzer, i, &info), 0);
    }
    judged = 0;
    return analyzer;
}

/* How often the waits are judged when this host ticks; something has happened there before. */
static int judgements_of_tick(struct analyzer *analyzer, int host)
{
    struct record member = {.api = API_notice_member, .comm = {.comm = 7, .nranks = HOSTS}};
    const struct record tick = {.time_ns = 1000, .api = API_notice_tick};
    int before = judged;
    member.comm.rank = host;
    assert_int_equal(analyzer_feed(analyzer, host, &member), 0);
    assert_int_equal(analyzer_feed(analyzer, host, &tick), 0);
    return judged - before;
}

static void one_host_is_judged_at_each_tick(void **state)
{
    (void)state;
    struct analyzer *analyzer = make_analyzer(1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(judgements_of_tick(analyzer, 0), 1);
    analyzer_free(analyzer);
}

static void many_are_judged_once_a_round(void **state)
{
    (void)state;
    struct analyzer *analyzer = make_analyzer(HOSTS);
    for (int round = 0; round < 4; round++) {
        assert_int_equal(judgements_of_tick(analyzer, round % 3), 0);
        assert_int_equal(judgements_of_tick(analyzer, (round + 1) % 3), 0);
        assert_int_equal(judgements_of_tick(analyzer, (round + 2) % 3), 1);
    }
    analyzer_free(analyzer);
}

static void a_silent_host_holds_nobody_up(void **state)
{
    (void)state;
    struct analyzer *analyzer = make_analyzer(HOSTS);
    assert_int_equal(judgements_of_tick(analyzer, 0), 0);
    assert_int_equal(judgements_of_tick(analyzer, 1), 0);
    assert_int_equal(judgements_of_tick(analyzer, 0), 1);
    assert_int_equal(judgements_of_tick(analyzer, 0), 0);
    assert_int_equal(judgements_of_tick(analyzer, 0), 1);
    analyzer_free(analyzer);
}

/* A reader of a job that goes on has an incomplete round at the end. */
static void what_is_known_yet_is_judged(void **state)
{
    (void)state;
    struct analyzer *analyzer = make_analyzer(HOSTS);
    assert_int_equal(judgements_of_tick(analyzer, 0), 0);
    assert_int_equal(judgements_of_tick(analyzer, 1), 0);
    assert_int_equal(analyzer_catch_up(analyzer), 0);
    assert_int_equal(judged, 1);
    assert_int_equal(analyzer_catch_up(analyzer), 0);
    assert_int_equal(judged, 1); /* nothing waits, and nothing has changed */
    assert_int_equal(judgements_of_tick(analyzer, 2), 1);
    analyzer_free(analyzer);
}

static void the_end_is_always_judged(void **state)
{
    (void)state;
    struct analyzer *analyzer = make_analyzer(HOSTS);
    assert_int_equal(judgements_of_tick(analyzer, 0), 0);
    assert_int_equal(analyzer_finish(analyzer), 0);
    assert_int_equal(judged, 1);
    analyzer_free(analyzer);
}

static void feed_at(struct analyzer *analyzer, uint64_t time_ns, struct record record)
{
    record.time_ns = time_ns;
    assert_int_equal(analyzer_feed(analyzer, 0, &record), 0);
}

static void while_nothing_happens_the_graph_is_kept(void **state)
{
    (void)state;
    struct analyzer *analyzer = make_analyzer(1);
    const struct record tick = {.api = API_notice_tick};
    struct record wait = {
        .api = API_cudaDeviceSynchronize, .phase = RECORD_ENTER, .thread = 1, .serial = 1};
    const uint64_t entered_ns = 1000, settled_ns = entered_ns + SETTLE_NS;
    feed_at(analyzer, entered_ns, wait);
    feed_at(analyzer, settled_ns - 1, tick);
    assert_null(analyzer->wait_graph); /* at the next tick the thread may count as blocked */
    feed_at(analyzer, settled_ns, tick);
    assert_non_null(analyzer->wait_graph);
    assert_int_equal(analyzer->wait_graph->blocked_count, 1);
    feed_at(analyzer, 2 * settled_ns, tick);
    assert_non_null(analyzer->wait_graph);
    assert_int_equal(analyzer->wait_graph->now_ns, 2 * settled_ns);
    assert_int_equal(judged, 3);
    wait.phase = RECORD_LEAVE;
    wait.leave.enter = wait.serial++;
    feed_at(analyzer, 2 * settled_ns, wait);
    assert_null(analyzer->wait_graph);
    analyzer_free(analyzer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_host_is_judged_at_each_tick),
        cmocka_unit_test(many_are_judged_once_a_round),
        cmocka_unit_test(a_silent_host_holds_nobody_up),
        cmocka_unit_test(what_is_known_yet_is_judged),
        cmocka_unit_test(the_end_is_always_judged),
        cmocka_unit_test(while_nothing_happens_the_graph_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
