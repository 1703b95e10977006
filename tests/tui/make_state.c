/* make_state DATABASE: adds to a trace made by hand what a collector would have kept: findings, how
 * the members stand. */
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/analyzer.h"
#include "lib/finding/finding_store.h"
#include "lib/trace/store.h"
#include "lib/trace/trace.h"

static _Noreturn void die(const struct error *err)
{
    fprintf(stderr, "make_state: %s\n", err->text);
    exit(1);
}

static void add_finding(void *context, const struct finding *finding)
{
    struct error err = {""};
    if (finding_store(context, finding, &err))
        die(&err);
}

static void add_member(void *context, const struct member_state *member)
{
    struct error err = {""};
    if (store_member(context, member, 0, &err))
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
