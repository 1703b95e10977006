/* make_state DATABASE: adds to a trace made by hand what a collector would have kept: findings, how
 * the members stand. */
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/analyzer.h"
#include "lib/trace/store.h"
#include "lib/trace/trace.h"

enum { RANKS_BYTES = 256 };

static _Noreturn void die(const struct error *err)
{
    fprintf(stderr, "make_state: %s\n", err->text);
    exit(1);
}

static void add_finding(void *context, const struct finding *finding)
{
    struct error err = {""};
    struct store_side side[FINDING_SIDES_MAX];
    char ranks[FINDING_SIDES_MAX][RANKS_BYTES];
    for (int i = 0; i < finding->sides; i++) {
        const struct finding_side *from = &finding->side[i];
        side[i] = (struct store_side){
            .ranks = rankset_text(&from->ranks, ranks[i], sizeof ranks[i]),
            .call = from->call,
            .phase = from->phase,
            .where = from->where,
            .process = from->process,
            .stack = from->stack,
            .where_stack = from->where_stack,
            .since_ns = from->since_ns,
            .stack_is_address = from->stack_is_address,
            .where_stack_is_address = from->where_stack_is_address,
        };
    }
    const struct store_finding stored = {
        .id = finding->id,
        .code = finding->code,
        .severity = severity_name(finding->severity),
        .certainty = certainty_name(finding->certainty),
        .state = finding->state == FINDING_OPEN ? "open" : "resolved",
        .what = finding->what,
        .todo = finding->todo,
        .comm = finding->comm,
        .number = finding->number,
        .first_ns = finding->first_ns,
        .last_ns = finding->last_ns,
        .times = finding->times,
        .fingerprint = finding->fingerprint,
        .has_number = finding->has_number,
        .side = side,
        .sides = finding->sides,
    };
    if (store_finding(context, &stored, &err))
        die(&err);
}

static void add_member(void *context, const struct member_view *view)
{
    struct error err = {""};
    const struct store_member member = {
        .comm = view->comm,
        .rank = view->rank,
        .shown_rank = view->shown_rank,
        .nranks = view->nranks,
        .process = view->process,
        .device = view->device,
        .issued = view->issued,
        .started = view->started,
        .done = view->done,
        .p2p = view->calls_p2p,
        .destroyed = view->destroyed,
        .ended = view->ended,
        .where = view->where,
        .phase = view->phase,
        .last_call = view->last_call,
        .stack = view->where_stack,
        .stack_is_address = view->where_stack_is_address,
        .since_ns = view->where_since_ns,
    };
    if (store_member(context, &member, &err))
        die(&err);
}

static void replay(struct analyzer *analyzer, struct trace *trace)
{
    struct error err = {"memory is short"};
    struct record record;
    int process, more = 1;
    for (int i = 0; i < trace_process_count(trace); i++)
        if (analyzer_add_process(analyzer, i, trace_process(trace, i)))
            die(&err);
    while ((more = trace_next(trace, &process, &record, &err)) == 1)
        if (analyzer_feed(analyzer, process, &record))
            die(&err);
    if (more < 0)
        die(&err);
    if (trace_complete(trace) && analyzer_finish(analyzer))
        die(&err);
}

int main(int argc, char **argv)
{
    struct error err = {"memory is short"};
    struct trace *trace;
    struct store *store;
    const char *path = argc == 2 ? argv[1] : "";
    if (argc != 2 || trace_open(&trace, &path, 1, &err) < 0)
        die(&err);
    struct analyzer *analyzer = analyzer_new(&(struct analyzer_options){0});
    if (!analyzer)
        die(&err);
    replay(analyzer, trace);
    trace_close(trace);
    if (store_open(&store, path, &err) || store_begin(store, &err))
        die(&err);
    analyzer_visit_findings(analyzer, add_finding, store);
    analyzer_visit_members(analyzer, add_member, store);
    analyzer_free(analyzer);
    if (store_close(store, &err))
        die(&err);
    return 0;
}
