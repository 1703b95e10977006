/* Names of functions and lines come to the hub from the hosts: a finding waits for them, but not
 * for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hub_job.h"

#define CALL_STACK UINT64_C(0x5757)

enum { INNER_FRAME = 0x2020, OUTER_FRAME = 0x1010 };

static void open_names(struct test_hub *test)
{
    struct error err;
    snprintf(test->names_path, sizeof test->names_path, "test_hub_names.%d.db", (int)getpid());
    unlink(test->names_path);
    assert_int_equal(store_open(&test->names_store, test->names_path, &err), 0);
    assert_int_equal(store_begin(test->names_store, &err), 0);
    for (int i = 0; i < test->ranks_of_host; i++) {
        const struct process_info info = {.pid = 1000 + i, .host = "n0", .boot_id = "boot1"};
        assert_int_equal(store_process(test->names_store, &info, &err), i);
    }
    assert_int_equal(store_commit(test->names_store, &err), 0);
}

static void close_names(struct test_hub *test)
{
    trace_close(test->names);
    assert_int_equal(store_close(test->names_store, NULL), 0);
    unlink(test->names_path);
}

static void name_frame(struct test_hub *test, uint64_t address, const char *function,
                       const char *file, int line)
{
    struct error err;
    assert_int_equal(store_begin(test->names_store, &err), 0);
    for (int process = 0; process < test->ranks_of_host; process++)
        assert_int_equal(store_symbol(test->names_store, process, address, "/bin/train", function,
                                      file, line, &err),
                         0);
    assert_int_equal(store_commit(test->names_store, &err), 0);
}

/* Every rank has the stack "train.c:20 of main.c:10"; rank 5 leaves an operation out. Returns when
 * all is fed. */
static uint64_t begin_named_hang(struct test_hub *test)
{
    struct job *job = hub_job_new();
    struct record record;
    int rank;
    uint64_t now_ns = 0;
    hub_job_operations(job, COMM, 10);
    for (rank = 0; rank < HUB_RANKS; rank++)
        if (rank != 5)
            ALL_REDUCE(job, rank, COMM, 4096, .stream = HUB_STREAM);
    for (rank = 0; rank < HUB_RANKS; rank++)
        wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
    hub_job_begin(test, 2);
    open_names(test);
    for (int i = 0; i < HUB_RANKS; i++) {
        record = (struct record){.api = API_notice_stack, .device = RECORD_NO_DEVICE};
        record.frames.id = CALL_STACK;
        record.frames.count = 2;
        record.frames.address[0] = INNER_FRAME;
        record.frames.address[1] = OUTER_FRAME;
        hub_job_feed(&test->host[i / test->ranks_of_host], i % test->ranks_of_host, &record);
    }
    for (size_t i = 0; job_event(job, i, &rank, &record); i++) {
        struct test_host *host = &test->host[rank / test->ranks_of_host];
        now_ns = record.time_ns;
        if (record.phase == RECORD_ENTER)
            record.stack = CALL_STACK;
        hub_job_feed(host, rank - host->first, &record);
    }
    job_free(job);
    return now_ns;
}

/* Time passes, a tick every 100 ms, until there is news or `most_ms` have passed. */
static void pass_time(struct test_hub *test, uint64_t *now_ns, int most_ms)
{
    for (int ms = 0; ms < most_ms && !test->sent; ms += 100) {
        *now_ns += 100 * MS;
        const struct record tick = {
            .time_ns = *now_ns, .api = API_notice_tick, .device = RECORD_NO_DEVICE};
        for (int i = 0; i < test->hosts; i++)
            hub_job_feed(&test->host[i], 0, &tick);
        hub_job_exchange(test, *now_ns);
    }
}

static void send_outer_name(struct test_hub *test)
{
    struct message_writer writer = {0};
    struct item_symbol item = {
        .address = OUTER_FRAME, .line = 10, .module = "/bin/train", .file = "main.c"};
    for (; (int)item.process < test->ranks_of_host; item.process++)
        message_add(&writer, ITEM_SYMBOL, &item);
    for (int i = 0; i < test->hosts; i++)
        transport_publish(test->host[i].transport, CHANNEL_FACTS, writer.data, writer.bytes, NULL);
    message_free(&writer);
}

static void close_named_hang(struct test_hub *test, uint64_t now_ns)
{
    hub_job_finish(test, now_ns);
    close_names(test);
}

/* The names come with the answers: the first news is complete. A host that finds the name of the
 * inner frame late: the finding waits for it. */
static void a_finding_has_the_users_line(void **state)
{
    (void)state;
    struct test_hub test;
    uint64_t from_ns = begin_named_hang(&test), now_ns = from_ns;
    name_frame(&test, OUTER_FRAME, "main", "main.c", 10);
    name_frame(&test, INNER_FRAME, "train", "train.c", 20);
    pass_time(&test, &now_ns, 30000);
    assert_int_equal(test.sent, 1);
    assert_string_equal(hub_job_first_news(&test)->location, "train.c:20");
    close_named_hang(&test, now_ns);
    int found_ms = (int)((now_ns - from_ns) / MS);
    now_ns = begin_named_hang(&test);
    test.no_names = true;
    hub_job_exchange(&test, now_ns);
    send_outer_name(&test);
    pass_time(&test, &now_ns, found_ms + 200);
    assert_int_equal(test.sent, 0);
    test.no_names = false;
    name_frame(&test, INNER_FRAME, "train", "train.c", 20);
    pass_time(&test, &now_ns, 1000);
    assert_int_equal(test.sent, 1);
    assert_string_equal(hub_job_first_news(&test)->location, "train.c:20");
    close_named_hang(&test, now_ns);
}

/* Where there are none the finding comes all the same: at once if the hosts say so, else after a
 * moment. */
static void a_finding_without_names(void **state)
{
    (void)state;
    for (int no_names = 0; no_names <= 1; no_names++) {
        struct test_hub test;
        uint64_t now_ns = begin_named_hang(&test);
        test.no_names = no_names;
        pass_time(&test, &now_ns, 30000);
        assert_int_equal(test.sent, 1);
        assert_string_equal(hub_job_first_news(&test)->location, "");
        close_named_hang(&test, now_ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_finding_has_the_users_line),
        cmocka_unit_test(a_finding_without_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
