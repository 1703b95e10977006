/* What a host of a job makes of the hub's findings: which are this job's, and which it reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "collector/collector.h"
#include "collector/symbolizer.h"
#include "lib/finding/finding_store.h"
#include "lib/job/message.h"
#include "lib/job/transport.h"

#define BEGAN_NS UINT64_C(1700000000000000000)
#define SECOND   UINT64_C(1000000000)

enum { COMM = 1, OTHER_COMM };

struct job_host {
    struct transport_local *transports;
    struct transport *hub, *transport;
    struct collector *collector;
    struct collector_summary summary;
    struct transport_functions functions; /* of a transport that has lost its hub */
    uint64_t now_ns;
};

static void begin(struct job_host *host)
{
    *host = (struct job_host){.transports = transport_local_new(), .now_ns = SECOND};
    host->hub = transport_local_hub(host->transports);
    host->transport = transport_local_host(host->transports, "n1");
    host->collector = calloc(1, sizeof *host->collector);
    assert_non_null(host->collector);
    host->collector->options.transport = host->transport;
    host->collector->options.notify_fd = -1;
    host->collector->summary = &host->summary;
    host->collector->analyzer = analyzer_new(NULL);
    host->collector->symbolizer = symbolizer_new("no database");
    assert_int_equal(collector_job_open(host->collector), 0);
}

static void finish(struct job_host *host)
{
    collector_job_close(host->collector);
    collector_job_forget(host->collector);
    symbolizer_free(host->collector->symbolizer);
    analyzer_free(host->collector->analyzer);
    free(host->collector);
    transport_close(host->transport);
    transport_close(host->hub);
    transport_local_free(host->transports);
}

static void send_item(struct job_host *host, enum item_kind kind, const void *item)
{
    struct message_writer writer = {0};
    struct error err;
    assert_true(message_add(&writer, kind, item));
    assert_int_equal(transport_publish(host->hub, CHANNEL_NEWS, writer.data, writer.bytes, &err),
                     0);
    message_free(&writer);
    host->now_ns += SECOND;
    collector_job_pass(host->collector, host->now_ns, false);
}

static void send_error(struct job_host *host, uint32_t id, uint64_t realtime_ns)
{
    struct item_news news = {.realtime_ns = realtime_ns,
                             .id = id,
                             .severity = SEVERITY_ERROR,
                             .certainty = CERTAIN,
                             .state = FINDING_OPEN,
                             .code = "DC201",
                             .asked = "0-9"};
    news.text[0] = (char)('a' + id);
    send_item(host, ITEM_NEWS, &news);
}

static void send_reporter(struct job_host *host, int rank, uint64_t since_ns)
{
    const struct item_reporter reporter = {
        .realtime_ns = since_ns, .since_ns = since_ns, .rank = rank};
    send_item(host, ITEM_REPORTER, &reporter);
}

static int poll_lost(struct transport *transport, int timeout_ms, struct transport_message *message,
                     struct error *err)
{
    (void)transport;
    (void)timeout_ms;
    (void)err;
    static bool was_lost;
    was_lost = !was_lost;
    *message = (struct transport_message){.event = was_lost ? TRANSPORT_LOST : TRANSPORT_NOTHING};
    return 0;
}

/* Long enough that it will not come back. */
static void lose_hub(struct job_host *host)
{
    host->functions = *host->transport->functions;
    host->functions.poll = poll_lost;
    host->transport->functions = &host->functions;
    for (int passes = 0; passes < 2; passes++, host->now_ns += 20 * SECOND)
        collector_job_pass(host->collector, host->now_ns, false);
}

static void add_rank(struct job_host *host, int rank)
{
    const struct process_info info = {
        .pid = 7, .rank = rank, .realtime_ns = BEGAN_NS, .host = "n1", .boot_id = "b"};
    assert_int_equal(analyzer_add_process(host->collector->analyzer, 0, &info), 0);
    assert_int_equal(collector_job_add_process(host->collector, 0, &info), 0);
}

static int count_errors(struct job_host *host)
{
    host->summary = (struct collector_summary){0};
    collector_job_count(host->collector);
    return host->summary.found[SEVERITY_ERROR];
}

/* The hub's server sends it before the first process here has begun, as it does one of this job,
 * which another host's ranks made. */
static void an_earlier_job_s_error_is_no_trouble(void **state)
{
    (void)state;
    for (int is_of_job = 0; is_of_job <= 1; is_of_job++) {
        struct job_host host;
        begin(&host);
        send_error(&host, 1, is_of_job ? BEGAN_NS + SECOND : BEGAN_NS - 100 * SECOND);
        assert_false(host.collector->hang.troubled);
        add_rank(&host, 0);
        assert_int_equal(host.collector->hang.troubled, is_of_job);
        assert_int_equal(count_errors(&host), is_of_job);
        finish(&host);
    }
}

/* What was found before this host reported is counted where it was reported. */
static void an_error_is_counted_where_it_is_reported(void **state)
{
    (void)state;
    struct job_host host;
    begin(&host);
    add_rank(&host, 4);
    send_error(&host, 1, BEGAN_NS + SECOND);
    assert_int_equal(count_errors(&host), 0);
    send_reporter(&host, 4, BEGAN_NS + 5 * SECOND);
    assert_int_equal(count_errors(&host), 0);
    send_error(&host, 2, BEGAN_NS + 6 * SECOND);
    assert_int_equal(count_errors(&host), 1);
    send_reporter(&host, 4, BEGAN_NS + 9 * SECOND);
    assert_int_equal(count_errors(&host), 1);
    finish(&host);
}

/* Of an error of many ranks only some hosts record where theirs stand. */
static void an_error_asks_the_hosts_that_it_names(void **state)
{
    (void)state;
    for (int rank = 9; rank <= 10; rank++) {
        struct job_host host;
        begin(&host);
        add_rank(&host, rank);
        send_error(&host, 1, BEGAN_NS + SECOND);
        assert_int_equal(host.collector->hang.troubled, rank == 9); /* "0-9" are asked */
        finish(&host);
    }
}

/* A rank of the host, which is one of two, did this on a communicator. */
static struct finding job_finding(const char *code, uint64_t comm)
{
    return (struct finding){.id = 1,
                            .code = code_find(code),
                            .severity = SEVERITY_ERROR,
                            .certainty = CERTAIN,
                            .comm = comm,
                            .fingerprint = comm};
}

static bool hides_errors(void *context, const struct finding *finding, struct trace *trace)
{
    (void)context;
    (void)trace;
    return finding->severity != SEVERITY_ERROR;
}

/* The user's choice of findings is of the hub's, too; and one that is hidden is not sent. */
static void what_is_hidden_is_not_reported(void **state)
{
    (void)state;
    struct job_host host;
    struct transport_message message;
    struct error err;
    struct finding own = job_finding("DC301", COMM);
    own.what = own.todo = "";
    begin(&host);
    host.collector->options.is_shown = hides_errors;
    add_rank(&host, 0);
    assert_int_equal(collector_job_add_finding(host.collector, &own), 0);
    assert_true(collector_job_leaves(host.collector, &own)); /* not judged before it is stored */
    send_error(&host, 1, BEGAN_NS + SECOND);
    assert_int_equal(count_errors(&host), 0);
    assert_false(collector_job_sends(host.collector, &own));
    int facts = 0;
    while (transport_poll(host.hub, 0, &message, &err) == 0 && message.event != TRANSPORT_NOTHING)
        facts += message.channel == CHANNEL_FACTS;
    assert_int_equal(facts, 1); /* its process */
    finish(&host);
}

/* The hub has reported a mismatch on a communicator, and is gone: hangs of that are reported, those
 * of others are the host's to report. */
static void a_host_reports_what_a_lost_hub_has_not(void **state)
{
    (void)state;
    struct job_host host;
    const struct finding same = job_finding("DC101", COMM), hang = job_finding("DC201", COMM),
                         other = job_finding("DC201", OTHER_COMM);
    begin(&host);
    add_rank(&host, 0);
    send_item(&host, ITEM_NEWS,
              &(struct item_news){
                  .realtime_ns = BEGAN_NS + SECOND, .comm = COMM, .id = 1, .code = "DC101"});
    assert_true(collector_job_leaves(host.collector, &same));
    assert_true(collector_job_leaves(host.collector, &other));
    lose_hub(&host);
    assert_true(collector_job_leaves(host.collector, &same));
    assert_true(collector_job_leaves(host.collector, &hang));
    assert_false(collector_job_leaves(host.collector, &other));
    finish(&host);
}

static struct finding own_error(const char *code)
{
    struct finding finding = job_finding(code, COMM);
    finding.what = finding.todo = "";
    finding.merges_ranks = true;
    return finding;
}

/* All that the hub has not reported, since it may have dropped it. */
static void a_host_reports_what_a_full_hub_has_not(void **state)
{
    (void)state;
    struct job_host host;
    struct finding taken = own_error("DC301"), dropped = own_error("DC303"), own = taken;
    const struct item_full full = {.realtime_ns = BEGAN_NS + SECOND},
                           earlier = {.realtime_ns = BEGAN_NS - 100 * SECOND};
    begin(&host);
    add_rank(&host, 0);
    dropped.id = 2;
    own.id = 3; /* its rank is not the one that the hub's is of */
    own.merges_ranks = false;
    const struct finding *all[] = {&taken, &dropped, &own};
    for (int i = 0; i < 3; i++)
        assert_int_equal(collector_job_add_finding(host.collector, all[i]), 0);
    send_item(&host, ITEM_FULL, &earlier);
    for (int i = 0; i < 3; i++)
        assert_true(collector_job_leaves(host.collector, all[i]));
    send_item(&host, ITEM_FULL, &full);
    for (int i = 0; i < 3; i++)
        assert_false(collector_job_leaves(host.collector, all[i]));
    send_item(&host, ITEM_NEWS,
              &(struct item_news){.realtime_ns = BEGAN_NS + SECOND,
                                  .comm = COMM,
                                  .fingerprint = COMM,
                                  .severity = SEVERITY_WARNING,
                                  .id = 1,
                                  .code = "DC301",
                                  .asked = "0-9"});
    assert_true(collector_job_leaves(host.collector, &taken));
    assert_false(collector_job_leaves(host.collector, &dropped));
    assert_false(collector_job_leaves(host.collector, &own));
    finish(&host);
}

/* The hub sends no notes to hosts, so nobody else would report one. */
static void a_note_is_its_host_s(void **state)
{
    (void)state;
    struct job_host host;
    struct finding note = own_error("DC301");
    note.severity = SEVERITY_NOTE;
    begin(&host);
    add_rank(&host, 0);
    assert_int_equal(collector_job_add_finding(host.collector, &note), 0);
    assert_false(collector_job_leaves(host.collector, &note));
    finish(&host);
}

static void an_id_that_no_hub_gives_is_refused(void **state)
{
    (void)state;
    struct job_host host;
    begin(&host);
    add_rank(&host, 0);
    send_error(&host, 2 * FINDING_TAKEN_FIRST, BEGAN_NS + SECOND);
    send_error(&host, UINT32_MAX, BEGAN_NS + SECOND);
    assert_int_equal(count_errors(&host), 0);
    send_error(&host, 2 * FINDING_TAKEN_FIRST - 1, BEGAN_NS + SECOND);
    assert_int_equal(count_errors(&host), 1);
    finish(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_earlier_job_s_error_is_no_trouble),
        cmocka_unit_test(an_error_is_counted_where_it_is_reported),
        cmocka_unit_test(an_error_asks_the_hosts_that_it_names),
        cmocka_unit_test(what_is_hidden_is_not_reported),
        cmocka_unit_test(a_host_reports_what_a_lost_hub_has_not),
        cmocka_unit_test(a_host_reports_what_a_full_hub_has_not),
        cmocka_unit_test(a_note_is_its_host_s),
        cmocka_unit_test(an_id_that_no_hub_gives_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
