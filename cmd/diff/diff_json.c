/* diff_json.c: differences for programs, one JSON object a line (docs/diff.md). */
#include "cmd/diff/diff_print.h"
#include "cmd/json_values.h"
#include "lib/trace/names.h"
#include "lib/trace/site.h"

enum { OPERATIONS_MAX = 16 }; /* reported of each side */

static int print_diff_json(FILE *out, json_t *object, struct error *err)
{
    return json_print_line(object, out)
               ? error_set(err,
                           "can't write the differences: " OUT_OF_MEMORY " or the output is closed")
               : 0;
}

static json_t *diff_side_json(const struct diff_side *side)
{
    struct rankset ranks = {0};
    for (int i = 0; i < side->members; i++)
        if (side->member[i].shown_rank >= 0)
            rankset_add(&ranks, side->member[i].shown_rank);
    json_t *object = json_pack("{s:o, s:o, s:o, s:i}", "path", json_of_text(side->path), "ranks",
                               json_of_ranks(&ranks), "operations", json_of_count(side->operations),
                               "communicators", side->comms);
    rankset_free(&ranks);
    return object;
}

static json_t *op_json(struct diff_side *side, int member, const struct diff_op *op)
{
    char text[256];
    struct frame frame[SITE_FRAMES_MAX];
    bool numbered = api_class_of(op->record.api) == CLASS_COLLECTIVE;
    int frames = site_frames(side->trace, side->member[member].process, op->record.stack,
                             op->record.flags & RECORD_FLAG_ADDRESS, frame);
    return json_pack("{s:o, s:o, s:s, s:o}", "index", json_of_count(op->index), "number",
                     numbered ? json_of_count(op->record.op.number) : json_null(), "call",
                     record_text(&op->record, text, sizeof text), "frames",
                     json_of_frames(frame, frames));
}

/* One side of a difference: where, how many, and the first of them. */
static json_t *hunk_json(const struct diff_report *report, const struct difference *difference,
                         int which, struct error *err)
{
    struct diff_op op[OPERATIONS_MAX];
    struct diff_side *side = report->side[which];
    const struct diff_comm *comm =
        &side->comm[report->pairs->pair[difference->key.pair].comm[which]];
    uint64_t count = difference->hunk.count[which];
    int member = difference->member[which];
    int most = diff_read_ops(side, member, difference->hunk.at[which],
                             count < OPERATIONS_MAX ? (int)count : OPERATIONS_MAX, op, err);
    if (most < 0)
        return NULL;
    char ranks[256];
    json_t *operations = json_array();
    for (int i = 0; i < most; i++)
        json_array_append_new(operations, op_json(side, member, &op[i]));
    return json_pack("{s:o, s:s, s:o, s:o, s:b, s:o}", "comm", json_of_address(comm->id), "members",
                     diff_comm_ranks(side, comm, ranks, sizeof ranks), "index",
                     json_of_count(difference->hunk.at[which]), "count", json_of_count(count),
                     "at_end", difference->at_end[which], "operations", operations);
}

static int print_difference_json(const struct diff_report *report,
                                 const struct difference *difference, FILE *out, struct error *err)
{
    json_t *a = hunk_json(report, difference, 0, err), *b = hunk_json(report, difference, 1, err);
    if (!a || !b) {
        json_decref(a);
        json_decref(b);
        return err->text[0] ? -1 : error_memory(err, "can't write the differences");
    }
    return print_diff_json(
        out,
        json_pack("{s:s, s:o, s:o, s:o, s:b, s:o, s:o}", "schema", "ddpcheck.difference/1", "ranks",
                  json_of_ranks(&difference->ranks), "times", json_of_count(difference->key.times),
                  "since_begin_ns", json_of_count(difference->since_begin_ns), "open",
                  difference->hunk.open, "a", a, "b", b),
        err);
}

static json_t *order_side_json(const struct diff_report *report,
                               const struct order_difference *difference, int which)
{
    struct diff_side *side = report->side[which];
    const struct diff_op *op = &difference->op[which];
    return json_pack("{s:o, s:o}", "comm",
                     json_of_address(side->comm[side->member[op->member].comm].id), "operation",
                     op_json(side, op->member, op));
}

static int print_orders_json(const struct diff_report *report, FILE *out, struct error *err)
{
    for (int i = 0; i < report->orders->differences && i < report->limit; i++) {
        const struct order_difference *difference = &report->orders->difference[i];
        if (print_diff_json(out,
                            json_pack("{s:s, s:o, s:o, s:o, s:o}", "schema",
                                      "ddpcheck.order_difference/1", "ranks",
                                      json_of_ranks(&difference->ranks), "index",
                                      json_of_count(difference->index), "a",
                                      order_side_json(report, difference, 0), "b",
                                      order_side_json(report, difference, 1)),
                            err))
            return -1;
    }
    return 0;
}

static int print_extras(const struct diff_report *report, FILE *out, struct error *err)
{
    char ranks[256];
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < report->pairs->extras[which]; i++) {
            const struct diff_side *side = report->side[which];
            const struct diff_comm *comm = &side->comm[report->pairs->extra[which][i]];
            if (print_diff_json(
                    out,
                    json_pack(
                        "{s:s, s:s, s:o, s:s, s:i}", "schema", "ddpcheck.extra_communicator/1",
                        "only", which ? "b" : "a", "comm", json_of_address(comm->id), "members",
                        diff_comm_ranks(side, comm, ranks, sizeof ranks), "nranks", comm->nranks),
                    err))
                return -1;
        }
    return 0;
}

static int print_gaps_json(const struct diff_report *report, FILE *out, struct error *err)
{
    for (int i = 0; i < report->gaps->gaps; i++) {
        const struct diff_gap *gap = &report->gaps->gap[i];
        const int *comm = report->pairs->pair[gap->pair].comm;
        if (print_diff_json(
                out,
                json_pack("{s:s, s:o, s:o, s:o, s:o, s:b, s:b}", "schema",
                          "ddpcheck.dropped_calls/1", "ranks", json_of_ranks(&gap->ranks), "comm_a",
                          json_of_address(report->side[0]->comm[comm[0]].id), "comm_b",
                          json_of_address(report->side[1]->comm[comm[1]].id), "compared_from",
                          gap->number == DIFF_NOTHING ? json_null() : json_of_count(gap->number),
                          "dropped_in_a", gap->dropped[0], "dropped_in_b", gap->dropped[1]),
                err))
            return -1;
    }
    return 0;
}

static int print_setup_json(const struct diff_report *report, FILE *out, struct error *err)
{
    for (int i = 0; i < report->setup->differences; i++) {
        const struct setup_difference *difference = &report->setup->difference[i];
        if (print_diff_json(out,
                            json_pack("{s:s, s:s, s:o, s:o, s:o}", "schema",
                                      "ddpcheck.setup_difference/1", "what", difference->what, "a",
                                      json_of_text(difference->value[0]), "b",
                                      json_of_text(difference->value[1]), "ranks",
                                      json_of_ranks(&difference->ranks)),
                            err))
            return -1;
    }
    return 0;
}

int diff_print_json(const struct diff_report *report, FILE *out, struct error *err)
{
    const struct diff_result *result = report->result;
    if (print_diff_json(out,
                        json_pack("{s:s, s:s, s:s, s:o, s:o}", "schema", "ddpcheck.diff/1", "tool",
                                  "ddpcheck", "version", DDPCHECK_VERSION, "a",
                                  diff_side_json(report->side[0]), "b",
                                  diff_side_json(report->side[1])),
                        err))
        return -1;
    if (print_gaps_json(report, out, err))
        return -1;
    int shown = result->differences < report->limit ? result->differences : report->limit;
    for (int i = 0; i < shown; i++)
        if (print_difference_json(report, result->difference[i], out, err))
            return -1;
    if (print_orders_json(report, out, err) || print_extras(report, out, err) ||
        print_setup_json(report, out, err))
        return -1;
    for (int i = 0; i < report->speed->differences; i++)
        if (print_diff_json(out, diff_speed_json(&report->speed->difference[i]), err))
            return -1;
    return print_diff_json(
        out,
        json_pack(
            "{s:s, s:b, s:i, s:o, s:o, s:o, s:o}", "schema", "ddpcheck.diff_summary/1", "equal",
            diff_equal(report), "differences", result->differences + report->orders->differences,
            "members", json_of_count(result->members), "unequal", json_of_count(result->unequal),
            "only_a", json_of_ranks(&result->only[0]), "only_b", json_of_ranks(&result->only[1])),
        err);
}
