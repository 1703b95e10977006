/* Messages between a job's hosts and its hub: what is written is read, and what is damaged is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/job/message.h"

static const struct item_process a_process = {
    .process = 3, .info = {.pid = 17, .rank = 5, .host = "n1", .program = "train"}};
static const struct item_digest a_digest = {
    .comm = 0xaaaa, .rank = 5, .process = 3, .issued = 300, .started = 299, .done = 298};
static const struct item_news some_news = {.id = 1, .code = "DC201", .text = "rank 5 waits"};

/* One item of each of three kinds; the caller frees it. */
static struct message_writer write_three(void)
{
    struct message_writer writer = {0};
    assert_true(message_is_empty(&writer));
    assert_true(message_add(&writer, ITEM_PROCESS, &a_process));
    assert_true(message_add(&writer, ITEM_DIGEST, &a_digest));
    assert_true(message_add(&writer, ITEM_NEWS, &some_news));
    return writer;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct message_writer writer = write_three();
    struct message_reader reader;
    struct message_item item;
    struct error err;
    assert_int_equal(message_open(&reader, writer.data, writer.bytes, &err), 0);
    assert_int_equal(message_next(&reader, &item, &err), 1);
    assert_int_equal(item.kind, ITEM_PROCESS);
    assert_memory_equal(&item.process, &a_process, sizeof a_process);
    assert_int_equal(message_next(&reader, &item, &err), 1);
    assert_int_equal(item.kind, ITEM_DIGEST);
    assert_memory_equal(&item.digest, &a_digest, sizeof a_digest);
    assert_int_equal(message_next(&reader, &item, &err), 1);
    assert_int_equal(item.kind, ITEM_NEWS);
    assert_string_equal(item.news.text, "rank 5 waits");
    assert_int_equal(message_next(&reader, &item, &err), 0);
    message_free(&writer);
}

static void a_full_message_takes_no_more(void **state)
{
    (void)state;
    struct message_writer writer = {0};
    int added = 0;
    while (message_add(&writer, ITEM_PROCESS, &a_process))
        added++;
    assert_in_range(writer.bytes, TRANSPORT_BYTES_MAX - sizeof a_process - 64, TRANSPORT_BYTES_MAX);
    struct message_reader reader;
    assert_int_equal(message_open(&reader, writer.data, writer.bytes, NULL), 0);
    struct message_item item;
    while (message_next(&reader, &item, NULL) == 1)
        added--;
    assert_int_equal(added, 0);
    message_clear(&writer);
    assert_true(message_add(&writer, ITEM_PROCESS, &a_process));
    message_free(&writer);
}

enum { HEADER_BYTES = 24 }; /* of a message */

static void expect_refused(struct message_writer *writer, size_t bytes, const char *why)
{
    struct message_reader reader;
    struct error err = {{0}};
    assert_int_equal(message_open(&reader, writer->data, bytes, &err), -1);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" is not in \"%s\"", why, err.text);
}

static void what_is_no_message_is_refused(void **state)
{
    (void)state;
    struct message_writer writer = write_three();
    for (size_t bytes = 0; bytes < writer.bytes; bytes++)
        expect_refused(&writer, bytes, bytes < HEADER_BYTES ? "too short" : "says that it has");
    writer.data[4]++;
    expect_refused(&writer, writer.bytes, "use one version of ddpcheck on all hosts");
    writer.data[4]--;
    writer.data[0] = 'X';
    expect_refused(&writer, writer.bytes, "no message of ddpcheck");
    writer.data[0] = 'D';
    writer.data[HEADER_BYTES + 4]++; /* the first item's length */
    expect_refused(&writer, writer.bytes, "bytes instead of");
    message_free(&writer);
}

static void a_newer_kind_is_passed_over(void **state)
{
    (void)state;
    struct message_writer writer = write_three();
    struct message_reader reader;
    struct message_item item;
    writer.data[HEADER_BYTES] = 0xff; /* the first item's kind */
    assert_int_equal(message_open(&reader, writer.data, writer.bytes, NULL), 0);
    assert_int_equal(message_next(&reader, &item, NULL), 1);
    assert_int_equal(item.kind, ITEM_DIGEST);
    message_free(&writer);
}

static void expect_senseless(enum item_kind kind, const void *data)
{
    struct message_writer writer = {0};
    struct message_reader reader;
    struct message_item item;
    struct error err = {{0}};
    assert_true(message_add(&writer, kind, data));
    assert_int_equal(message_open(&reader, writer.data, writer.bytes, &err), 0);
    assert_int_equal(message_next(&reader, &item, &err), -1);
    assert_non_null(strstr(err.text, "makes no sense"));
    message_free(&writer);
}

static void fields_are_checked(void **state)
{
    (void)state;
    struct item_process process = a_process;
    memset(process.info.host, 'x', sizeof process.info.host);
    expect_senseless(ITEM_PROCESS, &process);
    struct item_digest digest = a_digest;
    digest.done = 1000;
    expect_senseless(ITEM_DIGEST, &digest);
    struct item_record record = {.record = {.api = API_COUNT}};
    expect_senseless(ITEM_RECORD, &record);
    struct item_tail tail = {.from = 2, .to = 1};
    expect_senseless(ITEM_TAIL, &tail);
    struct item_news news = some_news;
    memset(news.text, 'x', sizeof news.text);
    expect_senseless(ITEM_NEWS, &news);
}

/* Bytes changed, cut off and doubled at random: nothing but refusals. Under ASan nothing is read
 * outside. */
static void damaged_messages_do_no_harm(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 20000; round++) {
        struct message_writer writer = write_three();
        for (int i = 0; i < 1 + round % 8; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            writer.data[random % (round % 2 ? writer.bytes : 48)] = (unsigned char)(random >> 40);
        }
        size_t bytes = round % 3 ? writer.bytes : random % (writer.bytes + 1);
        unsigned char *copy = malloc(bytes ? bytes : 1);
        memcpy(copy, writer.data, bytes);
        struct message_reader reader;
        struct message_item item;
        if (message_open(&reader, copy, bytes, NULL) == 0)
            while (message_next(&reader, &item, NULL) == 1)
                continue;
        free(copy);
        message_free(&writer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_full_message_takes_no_more),
        cmocka_unit_test(what_is_no_message_is_refused),
        cmocka_unit_test(a_newer_kind_is_passed_over),
        cmocka_unit_test(fields_are_checked),
        cmocka_unit_test(damaged_messages_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
