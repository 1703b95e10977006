/* PyTorch's watchdog lines, as bug reports hold them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/import/log_torch.h"
#include "lib/trace/record.h"

static const struct watchdog_case {
    const char *text;
    int rank;
    const char *group, *op;
    int64_t seq, enqueued, completed, in, out;
} cases[] = {
    {"[rank1]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught "
     "collective operation timeout: "
     "WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, "
     "Timeout(ms)=600000) ran for 600020 milliseconds "
     "before timing out.",
     1, "", "ALLREDUCE", 808, -1, -1, 9801523, 9801523},
    {"[rank1]:[E626 06:24:44.906457629 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 1] Exception (either an error "
     "or timeout) detected by watchdog at work: 808, last enqueued NCCL work: 811, last completed "
     "NCCL work: 807.",
     1, "0(default_pg)", "", 808, 811, 807, -1, -1},
    {"[rank4]:[E1016 03:31:38.929234295 ProcessGroupNCCL.cpp:1709] [PG 3 Rank 4] Timeout at NCCL "
     "work: 9141, last enqueued NCCL "
     "work: 9141, last completed NCCL work: 9140.",
     4, "3", "", 9141, 9141, 9140, -1, -1},
    {"[E ProcessGroupNCCL.cpp:828] [Rank 2] Watchdog caught collective operation timeout: "
     "WorkNCCL(SeqNum=5, OpType=BROADCAST, "
     "Timeout(ms)=1800000) ran for 1804377 milliseconds before timing out.",
     2, "", "BROADCAST", 5, -1, -1, -1, -1},
    {"[rank2]:[E128 ProcessGroupNCCL.cpp:1870] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a "
     "dump signal due to a collective timeout from this local rank and we will try our best to dump "
     "the debug info. Last enqueued NCCL work: 24, last completed NCCL work: 21.",
     2, "0(default_pg)", "", 22, 24, 21, -1, -1},
    {"[rank1]:[E703 ProcessGroupNCCL.cpp:1806] [PG ID 0 PG GUID 0(default_pg) Rank 1] Observed "
     "flight recorder dump signal from another rank via TCPStore.",
     1, "0(default_pg)", "", -1, -1, -1, -1, -1},
    {"[rank3]:[E ProcessGroupNCCL.cpp:1] [PG ID 1 PG GUID 7 Rank 0]  failure detected by watchdog "
     "at work sequence id: 3 PG status: "
     "last enqueued work: 4, last completed work: 2",
     0, "7", "", 3, 4, 2, -1, -1},
    {"[rank3]:[E ProcessGroupNCCL.cpp:1] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump "
     "signal due to a collective timeout "
     "from rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: 807, "
     "last completed NCCL work: 807.This is "
     "most likely caused by incorrect usages of collectives",
     3, "0(default_pg)", "", -1, 807, 807, -1, -1},
    {"[rank2]: last enqueued NCCL work: 5, last completed NCCL work: -1. in rank", 2, "", "", -1, 5,
     -1, -1, -1},
};

static void lines_of_bug_reports(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct watchdog_line line;
        print_message("%s\n", cases[i].text);
        assert_true(watchdog_parse(cases[i].text, strlen(cases[i].text), &line));
        assert_int_equal(line.rank, cases[i].rank);
        assert_string_equal(line.group, cases[i].group);
        assert_string_equal(line.op, cases[i].op);
        assert_int_equal(line.seq, cases[i].seq);
        assert_int_equal(line.has_last, cases[i].enqueued >= 0);
        assert_int_equal(line.last_enqueued, cases[i].enqueued);
        assert_int_equal(line.last_completed, cases[i].completed);
        assert_int_equal(line.numel_in, cases[i].in);
        assert_int_equal(line.numel_out, cases[i].out);
    }
}

static void other_lines(void **state)
{
    static const char *const texts[] = {
        "",
        "[rank1]: loss 0.3",
        "Watchdog caught collective operation timeout: WorkNCCL(",
        "last enqueued NCCL work: 3",
        "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=x)",
        "[Rank ] last enqueued NCCL work: 3",
    };
    struct watchdog_line line;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        print_message("'%s'\n", texts[i]);
        assert_false(watchdog_parse(texts[i], strlen(texts[i]), &line));
    }
}

static void times_have_no_year(void **state)
{
    const uint64_t second = 1000000000, near = 1795271531 * second; /* 2026-11-21 14:32:11 */
    (void)state;
    assert_int_equal(
        torch_line_time("[rank1]:[E1121 14:07:15.619908540 ProcessGroupNCCL.cpp:688] [Rank 1]", 0,
                        near),
        1795270035619908540);
    assert_int_equal(torch_line_time("[E1121 14:07:15.5 ProcessGroupNCCL.cpp:688]", 0, near),
                     1795270035500000000);
    assert_int_equal(torch_line_time("[E1130 14:07:15.5 ProcessGroupNCCL.cpp:688]", 0, near),
                     1764511635500000000); /* last year */
    assert_int_equal(torch_line_time("[E101 00:00:00.0 ProcessGroupNCCL.cpp:688]", 0, near),
                     1767225600000000000);
    /* The log has a date of its own: the nearest year, whenever the file was written. */
    assert_int_equal(torch_line_time("[E1130 14:07:15.5 ProcessGroupNCCL.cpp:688]", near, 2 * near),
                     1796047635500000000);
    assert_int_equal(torch_line_time("[E101 00:00:00.0 ProcessGroupNCCL.cpp:688]", near, 2 * near),
                     1798761600000000000);
    assert_int_equal(torch_line_time("[E ProcessGroupNCCL.cpp:688]", 0, near), 0);
    assert_int_equal(torch_line_time("[E1399 14:07:15.5 ProcessGroupNCCL.cpp:688]", 0, near), 0);
    assert_int_equal(torch_line_time("[E1121 14:07 ProcessGroupNCCL.cpp:688]", 0, near), 0);
    assert_int_equal(torch_line_time("", 0, near), 0);
}

static void names_of_operations(void **state)
{
    struct watchdog_line line = {.op = "_REDUCE_SCATTER_BASE", .numel_in = 80, .numel_out = 10};
    int64_t count;
    (void)state;
    assert_int_equal(watchdog_api(&line, &count), API_ncclReduceScatter);
    assert_int_equal(count, 10);
    strcpy(line.op, "_ALLGATHER_BASE");
    assert_int_equal(watchdog_api(&line, &count), API_ncclAllGather);
    assert_int_equal(count, 80);
    strcpy(line.op, "COALESCED");
    assert_int_equal(watchdog_api(&line, &count), API_NONE);
    assert_int_equal(count, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_bug_reports),
        cmocka_unit_test(other_lines),
        cmocka_unit_test(times_have_no_year),
        cmocka_unit_test(names_of_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
