/* ddpcheck diff: where two traces, or two ranks of one, first differ. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/diff/diff_print.h"
#include "cmd/command_traces.h"
#include "cmd/options/options.h"

enum { LIMIT = 20, RANK_NONE = -1 };

struct diff_request {
    bool json, by_host;
    int color; /* enum color_when */
    long limit, rank, with;
};

static bool has_rank(const struct diff_side *side, long rank)
{
    for (int i = 0; i < side->members; i++)
        if (side->member[i].shown_rank == rank)
            return true;
    return false;
}

/* Everything is read: compares and prints. */
static int compare_sides(struct diff_side *const side[2], const struct diff_request *request,
                         struct error *err)
{
    char name[2][32];
    bool two_ranks = request->rank != RANK_NONE;
    struct diff_pairs pairs = {0};
    struct diff_gaps gaps = {0};
    struct diff_result result = {0};
    struct diff_orders orders = {0};
    struct diff_setup setup = {0};
    struct diff_speed speed = {0};
    struct diff_report report = {.side = side,
                                 .name = {"A", "B"},
                                 .pairs = &pairs,
                                 .gaps = &gaps,
                                 .result = &result,
                                 .orders = &orders,
                                 .setup = &setup,
                                 .speed = &speed,
                                 .limit = (int)request->limit};
    for (int which = 0; which < 2 && two_ranks; which++) {
        long rank = which ? request->with : request->rank;
        if (!has_rank(side[which], rank))
            return error_set(err, "%s has no communicator of rank %ld", side[which]->path, rank);
        snprintf(name[which], sizeof name[which], "rank %ld", rank);
        report.name[which] = name[which];
    }
    int status = two_ranks
                     ? diff_pair_ranks(&pairs, side[0], (int)request->rank, (int)request->with)
                     : diff_pair_traces(&pairs, side[0], side[1]);
    if (status || diff_setup(&setup, side, (int)request->rank, (int)request->with) ||
        diff_speed(&speed, &pairs, side, (int)request->rank, (int)request->with))
        status = error_memory(err, "can't compare the traces");
    else
        status =
            diff_cut_dropped(&gaps, &pairs, side, err) ||
                    diff_compare(&result, &pairs, side, two_ranks, err) ||
                    diff_orders(&orders, &pairs, side, (int)request->rank, (int)request->with, err)
                ? -1
                : 0;
    if (!status && request->json) {
        status = diff_print_json(&report, stdout, err);
    } else if (!status) {
        struct page page;
        page_init(&page, stdout, (enum color_when)request->color);
        status = diff_print_text(&report, &page, err);
    }
    if (!status && gaps.gaps && !result.members)
        status = error_set(
            err,
            "nothing to compare: no call of NCCL is in both traces (--keep dropped the others)");
    else if (!status)
        status = diff_equal(&report) ? STATUS_CLEAN : STATUS_FINDINGS;
    diff_pairs_free(&pairs);
    diff_gaps_free(&gaps);
    diff_result_free(&result);
    diff_orders_free(&orders);
    diff_setup_free(&setup);
    diff_speed_free(&speed);
    return status;
}

static int diff_loaded(char **path, int paths, const struct diff_request *request,
                       const struct command_traces *traces)
{
    struct diff_side a = {0}, b = {0}, *side[2] = {&a, paths == 2 ? &b : &a};
    struct error err = {{0}};
    bool progress = isatty(STDERR_FILENO);
    int status = diff_side_load(&a, path[0], progress, &err);
    if (!status && paths == 2)
        status = diff_side_load(&b, path[1], progress, &err);
    for (int which = 0; which < paths; which++)
        side[which]->path = command_traces_name(&traces[which], path[which]);
    if (!status)
        status = compare_sides(side, request, &err);
    if (status < 0)
        status = command_fail(&err);
    for (int which = 0; which < paths; which++)
        if (side[which]->damage.text[0])
            status = command_fail(&side[which]->damage);
    diff_side_free(&a);
    diff_side_free(&b);
    return status;
}

static int diff_paths(char **path, int paths, const struct diff_request *request)
{
    struct command_traces traces[2];
    struct error err;
    int opened = 0, status = 0;
    while (opened < paths && !status) {
        int one = 1;
        status = command_traces_open(&traces[opened], &path[opened], &one, &err);
        opened += !status;
    }
    status = status ? command_fail(&err) : diff_loaded(path, paths, request, traces);
    while (opened)
        command_traces_close(&traces[--opened]);
    return status;
}

int command_diff(int argc, char **argv)
{
    struct diff_request request = {.limit = LIMIT, .rank = RANK_NONE, .with = RANK_NONE};
    const struct option_entry entries[] = {
        {"rank", 0, OPTION_NUMBER, "R", "compare rank R of one trace ...", &request.rank},
        {"with", 0, OPTION_NUMBER, "S", "... with its rank S", &request.with},
        {"limit", 0, OPTION_NUMBER, "N", "show the first N differences (default: 20)",
         &request.limit},
        {"json", 0, OPTION_FLAG, NULL, "print JSON lines (docs/diff.md)", &request.json},
        {"by-host", 0, OPTION_FLAG, NULL, NULL, &request.by_host},
        OPTION_COLOR(&request.color),
    };
    const struct command_options options = {
        .command = "diff",
        .arguments = "DIR|DATABASE [DIR|DATABASE]",
        .summary = "Shows where two traces first differ: what their ranks called, on which "
                   "communicators, and how they\n"
                   "were started. A good run and a bad one, or with --rank and --with two ranks of "
                   "one trace.",
        .entries = entries,
        .count = OPTION_COUNT(entries),
        .details =
            "Lines with - are in the first only, lines with + in the second only.\n"
            "Exit status: 0 the same operations; 1 they differ; 2 usage error or a trace that "
            "can't be read.\n"
            "A difference in versions, the command line or speed alone is reported, and leaves "
            "0.\n",
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    if (request.by_host)
        return options_usage_error(&options, "it compares every call of every rank, and analyses "
                                             "nothing across hosts that --by-host could leave out");
    bool two_ranks = request.rank != RANK_NONE || request.with != RANK_NONE;
    if (two_ranks && (request.rank == RANK_NONE || request.with == RANK_NONE))
        return options_usage_error(&options, "--rank and --with go together");
    int traces = two_ranks ? 1 : 2;
    if (argc != traces)
        return options_usage_error(&options, two_ranks
                                                 ? "with --rank and --with it takes one trace"
                                                 : "it takes two traces: ddpcheck diff GOOD BAD");
    return diff_paths(argv, argc, &request);
}
