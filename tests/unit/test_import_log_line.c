/* NCCL's lines in a log: real ones of the versions and launchers that there are, cut and run
 * together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/import/log_event.h"
#include "lib/import/log_line.h"
#include "lib/trace/record.h"

#define COLL                                                                                  \
    "AllReduce: opCount 1a sendbuff 0x10 recvbuff 0x20 count 64 datatype 7 op 0 root 0 comm " \
    "0x7f0c [nranks=2] stream 0x7f"

static int lines_of(const char *text, struct log_line *lines, int max)
{
    size_t offset = 0;
    int count = 0;
    while (count < max && log_line_next(text, strlen(text), &offset, &lines[count]))
        count++;
    return count;
}

static const struct header_case {
    const char *text, *host;
    enum log_level level;
    int pid, tid, device, rank;
    const char *message;
} header_cases[] = {
    {"gpu1:13135:13922 [0] NCCL INFO hello", "gpu1", LOG_INFO, 13135, 13922, 0, -1, "hello"},
    {"[rank3]:gpu1:13135:13922 [0] NCCL INFO hello\n", "gpu1", LOG_INFO, 13135, 13922, 0, 3,
     "hello"},
    {"[default0]:gpu1:13135:13922 [7] NCCL INFO hello", "gpu1", LOG_INFO, 13135, 13922, 7, -1,
     "hello"},
    {"[1,12]<stdout>:node-7.cluster:1:2 [1] NCCL INFO hello", "node-7.cluster", LOG_INFO, 1, 2, 1,
     12, "hello"},
    {"[prterun-head-173@1,3]<stdout>: gpu1:1:2 [1] NCCL INFO hello", "gpu1", LOG_INFO, 1, 2, 1, 3,
     "hello"},
    {" 5: gpu1:1:2 [1] NCCL INFO hello", "gpu1", LOG_INFO, 1, 2, 1, 5, "hello"},
    {"[6] gpu1:1:2 [1] NCCL INFO hello", "gpu1", LOG_INFO, 1, 2, 1, 6, "hello"},
    {"(RayTrainWorker pid=615, ip=10.72.7.6) r24-a-l4-8-fqztx:615:18953 [2] NCCL INFO hello",
     "r24-a-l4-8-fqztx", LOG_INFO, 615, 18953, 2, -1, "hello"},
    {"gpu1:1:2 [0] init.cc:1247 NCCL WARN Mismatched collective detected", "gpu1", LOG_WARN, 1, 2,
     0, -1, "Mismatched collective detected"},
    {"[2026-11-21 14:03:22] gpu1:1:2 [0] init.cc:12 (commFree) NCCL WARN x", "gpu1", LOG_WARN, 1, 2,
     0, -1, "x"},
    {"gpu1:1:2 [0] 12.345678 enqueueCheck:99 NCCL TRACE x", "gpu1", LOG_TRACE, 1, 2, 0, -1, "x"},
    {"gpu1:1:2 NCCL CALL ncclGroupStart()", "gpu1", LOG_CALL, 1, 2, -1, -1, "ncclGroupStart()"},
    {"gpu1:1:2 [-1] NCCL INFO Bootstrap", "gpu1", LOG_INFO, 1, 2, -1, -1, "Bootstrap"},
};

static void headers_of_every_launcher(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof header_cases / sizeof *header_cases; i++) {
        const struct header_case *expected = &header_cases[i];
        struct log_line line[2];
        print_message("%s\n", expected->text);
        assert_int_equal(lines_of(expected->text, line, 2), 1);
        assert_string_equal(line->host, expected->host);
        assert_int_equal(line->level, expected->level);
        assert_int_equal(line->pid, expected->pid);
        assert_int_equal(line->tid, expected->tid);
        assert_int_equal(line->device, expected->device);
        assert_int_equal(line->rank, expected->rank);
        assert_int_equal(line->message_bytes, strlen(expected->message));
        assert_memory_equal(line->message, expected->message, line->message_bytes);
    }
}

static void what_is_no_line_of_nccl(void **state)
{
    static const char *const texts[] = {
        "",
        " NCCL INFO ",
        "NCCL INFO hello",
        "NCCL version 2.21.5+cuda12.4",
        ":: [0] NCCL INFO x",
        "gpu1:1:2 [x] NCCL INFO y",
        "gpu1:1: [0] NCCL INFO y",
        "the job printed NCCL INFO lines",
        "gpu1:1:2 [0] NCCL INFX y",
        "[rank1]:[E626 06:24:44.9 ProcessGroupNCCL.cpp:616] last enqueued NCCL work: 811",
        ":1:2 [0] NCCL INFO",
    };
    struct log_line line[1];
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        print_message("'%s'\n", texts[i]);
        assert_int_equal(lines_of(texts[i], line, 1), 0);
    }
}

static void two_lines_run_together(void **state)
{
    struct log_line line[4];
    struct log_event event;
    (void)state;
    assert_int_equal(
        lines_of("gpu1:10:11 [0] NCCL INFO " COLL "gpu1:20:21 [1] NCCL INFO " COLL, line, 4), 2);
    assert_true(line[0].cut);
    assert_false(line[1].cut);
    assert_int_equal(line[1].pid, 20);
    log_event_of_message(line[0].message, line[0].message_bytes, &event);
    assert_int_equal(event.kind, LOG_EVENT_OPERATION);
    assert_int_equal(event.comm, 0x7f0c);
    /* The host's name swallows what ran into it; the reader knows the hosts that there are. */
    assert_string_equal(line[1].host, "0x7fgpu1");

    assert_int_equal(lines_of("gpu1:10:11 [0] NCCL INFO AllReduce: opCount 1a sendbuff 0x10 "
                              "recgpu1:20:21 [1] NCCL INFO " COLL,
                              line, 4),
                     2);
    log_event_of_message(line[0].message, line[0].message_bytes, &event);
    assert_int_equal(event.kind, LOG_EVENT_CUT);
}

static void times(void **state)
{
    struct log_line line[1];
    (void)state;
    assert_int_equal(log_prefix_time("2026-11-21 14:03:22", 19), 1795269802000000000);
    assert_int_equal(log_prefix_time("2026-11-21T14:03:22.25Z", 23), 1795269802250000000);
    assert_int_equal(log_prefix_time("2026-11-21_15:03:22.25+01:00", 28), 1795269802250000000);
    assert_int_equal(log_prefix_time("2026-13-21 14:03:22", 19), 0);
    assert_int_equal(log_prefix_time("no time at all, this", 20), 0);
    assert_int_equal(lines_of("2026-11-21T14:03:22.25Z gpu1:1:2 [0] NCCL INFO x", line, 1), 1);
    assert_int_equal(line->time_ns, 1795269802250000000);
    assert_int_equal(lines_of("[2026-11-21 14:03:22] gpu1:1:2 [0] NCCL INFO x", line, 1), 1);
    assert_int_equal(line->time_ns, 1795269802000000000);
}

/* --- events --- */

static struct log_event message(const char *text)
{
    struct log_event event;
    log_event_of_message(text, strlen(text), &event);
    return event;
}

static struct log_event call(const char *text)
{
    struct log_event event;
    log_event_of_call(text, strlen(text), &event);
    return event;
}

static void operations(void **state)
{
    (void)state;
    struct log_event event = message("Send: opCount 12 sendbuff 0x7f505e93c000 recvbuff (nil) "
                                     "count 2420736 datatype 7 op 0 root 1 comm "
                                     "0x7f5128002e10 [nranks=2] stream 0x55f1de727ae0");
    assert_int_equal(event.kind, LOG_EVENT_OPERATION);
    assert_int_equal(event.api, API_ncclSend);
    assert_int_equal(event.sendbuff, 0x7f505e93c000);
    assert_int_equal(event.recvbuff, 0);
    assert_int_equal(event.count, 2420736);
    assert_int_equal(event.datatype, 7);
    assert_int_equal(event.root, 1);
    assert_int_equal(event.comm, 0x7f5128002e10);
    assert_int_equal(event.nranks, 2);
    assert_int_equal(event.stream, 0x55f1de727ae0);
    assert_int_equal(message("opCount 5 sendbuff 0x10 recvbuff 0x20 count 1024 size 4096 datatype "
                             "7 op 0 comm 0x5 [nranks=8] stream 0x6")
                         .kind,
                     LOG_EVENT_OPERATION); /* 2.3 */
    assert_int_equal(message("NewThing: opCount 5 sendbuff 0x10").kind, LOG_EVENT_NONE);
    assert_int_equal(
        message("AllReduce: opCount 5 sendbuff 0x10 recvbuff 0x20 count 1024 datatype").kind,
        LOG_EVENT_CUT);
    assert_int_equal(
        message("AllReduce: opCount 5 sendbuff zz count -1 datatype 7 comm 0x5 [nranks=8]").kind,
        LOG_EVENT_OPERATION);
    assert_int_equal(message("").kind, LOG_EVENT_NONE);
    assert_int_equal(message("Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM comm 0x1 nRanks 02").kind,
                     LOG_EVENT_NONE);
}

static void communicators(void **state)
{
    static const struct {
        const char *text;
        enum log_event_kind kind;
        uint16_t api;
        int rank, nranks, ordinal, color, key;
        uint64_t comm, comm_id, parent;
    } cases[] = {
        {"comm 0x7fdf08000d00 rank 15 nranks 16 cudaDev 7 busId e7000 - Init COMPLETE",
         LOG_EVENT_INIT_COMPLETE, API_ncclCommInitRank, 15, 16, -1, 0, 0, 0x7fdf08000d00, 0, 0},
        {"comm 0x557fe785f7a0 rank 36 nranks 64 cudaDev 4 nvmlDev 4 busId 9b000 commId "
         "0x5ae77eb5ea4ec1ee - Init START",
         LOG_EVENT_INIT_START, API_ncclCommInitRank, 36, 64, -1, 0, 0, 0x557fe785f7a0,
         0x5ae77eb5ea4ec1ee, 0},
        {"ncclCommInitRankConfig comm 0x563cb890f420 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId "
         "b000 commId 0xfa356df9cba89de0 - Init COMPLETE",
         LOG_EVENT_INIT_COMPLETE, API_ncclCommInitRankConfig, 3, 8, -1, 0, 0, 0x563cb890f420,
         0xfa356df9cba89de0, 0},
        {"ncclCommSplit comm 0xa rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId b000 parent 0xb "
         "splitCount 1 color 7 key 3- Init START",
         LOG_EVENT_INIT_START, API_ncclCommSplit, 1, 2, 1, 7, 3, 0xa, 0, 0xb},
        {"ncclCommSplit comm 0xa rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId b000 parent 0xb "
         "childCount 2 color 7 key 3 - Init COMPLETE",
         LOG_EVENT_INIT_COMPLETE, API_ncclCommSplit, 1, 2, 2, 7, 3, 0xa, 0, 0xb},
        {"[Rank 3] ncclCommInitRank comm 0xa rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId b000 commId "
         "0x9 - Init START",
         LOG_EVENT_INIT_START, API_ncclCommInitRank, 3, 8, -1, 0, 0, 0xa, 0x9, 0},
        {"comm 0xa rank 0 nranks 8 cudaDev 0 busId 1000 - Destroy COMPLETE",
         LOG_EVENT_LEAVE_COMPLETE, API_ncclCommDestroy, 0, 8, -1, 0, 0, 0xa, 0, 0},
        {"comm 0xa rank 0 nRanks 8 cudaDev 0 busId 1000 - Abort START", LOG_EVENT_LEAVE_START,
         API_ncclCommAbort, 0, 8, -1, 0, 0, 0xa, 0, 0},
        {"comm 0xa rank 0 nra - Init COMPLETE", LOG_EVENT_CUT, API_ncclCommInitRank, 0, -1, -1, 0,
         0, 0xa, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct log_event event = message(cases[i].text);
        print_message("%s\n", cases[i].text);
        assert_int_equal(event.kind, cases[i].kind);
        assert_int_equal(event.api, cases[i].api);
        assert_int_equal(event.rank, cases[i].rank);
        assert_int_equal(event.nranks, cases[i].nranks);
        assert_int_equal(event.ordinal, cases[i].ordinal);
        assert_int_equal(event.color, cases[i].color);
        assert_int_equal(event.key, cases[i].key);
        assert_int_equal(event.comm, cases[i].comm);
        assert_int_equal(event.comm_id, cases[i].comm_id);
        assert_int_equal(event.parent, cases[i].parent);
    }
}

static void calls(void **state)
{
    (void)state;
    struct log_event event = call(
        "ncclAllReduce(7f0000000200,7f0000000400,7382228,7,0,0,0x78cfda045840,0x78d07125e5e0)");
    assert_int_equal(event.kind, LOG_EVENT_OPERATION);
    assert_int_equal(event.api, API_ncclAllReduce);
    assert_int_equal(event.sendbuff, 0x7f0000000200);
    assert_int_equal(event.count, 7382228);
    assert_int_equal(event.comm, 0x78cfda045840);
    assert_int_equal(event.stream, 0x78d07125e5e0);
    assert_int_equal(call("ncclAllReduce(7f,7f,73,7,0,0,0x7,(nil))").kind, LOG_EVENT_OPERATION);
    assert_int_equal(call("ncclGroupStart()").kind, LOG_EVENT_GROUP_START);
    assert_int_equal(call("ncclGroupEnd()").kind, LOG_EVENT_GROUP_END);
    event = call("ncclCommInitRank(0x5581, 8, 0xfa356df9cba89de0, 3, 3)");
    assert_int_equal(event.kind, LOG_EVENT_INIT_COMPLETE);
    assert_int_equal(event.nranks, 8);
    assert_int_equal(event.rank, 3);
    assert_int_equal(event.comm_id, 0xfa356df9cba89de0);
    event = call("ncclCommSplit(0x1, -1, 2, 0x3, 4, 5)");
    assert_int_equal(event.parent, 1);
    assert_int_equal(event.color, -1);
    assert_int_equal(event.key, 2);
    assert_int_equal(event.comm, 3);
    assert_int_equal(event.rank, 4);
    assert_int_equal(event.nranks, 5);
    event = call("ncclRedOpCreatePreMulSum(5,0x7f,7,1,0x55)");
    assert_int_equal(event.kind, LOG_EVENT_PREMULSUM);
    assert_int_equal(event.redop, 5);
    assert_int_equal(event.comm, 0x55);
    assert_int_equal(call("ncclAllReduce(7f,7f,73,7,0,").kind, LOG_EVENT_CUT);
    assert_int_equal(call("ncclAllReduce(7f,7f,73,7,0,0)").kind, LOG_EVENT_CUT);
    assert_int_equal(call("ncclGetUniqueId(0x1)").kind, LOG_EVENT_NONE);
    assert_int_equal(call("garbage").kind, LOG_EVENT_NONE);
}

static void versions(void **state)
{
    (void)state;
    assert_int_equal(log_version_of("NCCL version 2.21.5+cuda12.4", 28), 22105);
    assert_int_equal(log_version_of("NCCL version 2.4.8+cuda10.0", 27), 2408);
    assert_int_equal(log_version_of("NCCL version ?", 14), 0);
}

/* Any bytes: no crash, and every call moves on. */
static void noise(void **state)
{
    static const char letters[] = "gpu1:23 [0]\n NCCL INFOWARN CALL()commx,rank-%\0\377";
    uint64_t chance = 88172645463325252;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[200];
        size_t bytes = round % sizeof text;
        for (size_t i = 0; i < bytes; i++) {
            chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
            text[i] = letters[chance % sizeof letters];
        }
        if (bytes > 80)
            memcpy(text + chance % 20, "h:1:2 [0] NCCL INFO comm 0x1 ", 29);
        text[bytes] = '\0';
        size_t offset = 0, last = 0;
        struct log_line line;
        struct log_event event;
        while (log_line_next(text, bytes, &offset, &line)) {
            assert_true(offset > last && offset <= bytes);
            last = offset;
            log_event_of_message(line.message, line.message_bytes, &event);
            log_event_of_call(line.message, line.message_bytes, &event);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_of_every_launcher),
        cmocka_unit_test(what_is_no_line_of_nccl),
        cmocka_unit_test(two_lines_run_together),
        cmocka_unit_test(times),
        cmocka_unit_test(operations),
        cmocka_unit_test(communicators),
        cmocka_unit_test(calls),
        cmocka_unit_test(versions),
        cmocka_unit_test(noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
