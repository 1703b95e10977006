/* A hub whose database nobody else reads: from the moment it is open there is no file that a killed
 * process could leave behind. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "hub/hub_internal.h"
#include "lib/job/message.h"
#include "lib/trace/trace.h"

static void no_file_has_its_name(void **state)
{
    (void)state;
    enum { PROCESSES = 2000 };
    struct error err;
    char folder[] = "test_hub_unnamed.XXXXXX", database[64];
    assert_non_null(mkdtemp(folder));
    snprintf(database, sizeof database, "%s/job.db", folder);
    struct transport_local *transports = transport_local_new();
    struct transport *transport = transport_local_hub(transports);
    struct transport *host = transport_local_host(transports, "n0");
    const struct hub_options options = {
        .transport = transport, .database = database, .is_unnamed = true};
    struct hub *hub;
    assert_int_equal(hub_open(&hub, &options, &err), 0);
    assert_int_equal(access(folder, F_OK), -1);
    assert_int_equal(errno, ENOENT);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        const struct item_process item = {
            .process = i, .info = {.pid = 1 + (int)i, .rank = (int)i, .host = "n0"}};
        struct message_writer writer = {0};
        assert_true(message_add(&writer, ITEM_PROCESS, &item));
        assert_int_equal(transport_publish(host, CHANNEL_FACTS, writer.data, writer.bytes, &err),
                         0);
        message_free(&writer);
    }
    assert_int_equal(hub_step(hub, 1000000000, 0, &err), 0);
    struct trace *trace = hub_open_trace(hub); /* which the hub's findings are located by */
    assert_non_null(trace);
    assert_int_equal(trace_process_count(trace), PROCESSES);
    assert_int_equal(access(folder, F_OK), -1);
    assert_int_equal(hub_close(hub, &err), 0);
    assert_int_equal(access(folder, F_OK), -1);
    transport_close(host);
    transport_close(transport);
    transport_local_free(transports);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_file_has_its_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
