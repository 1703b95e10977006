/* import_judge.c: analyses a trace during its import and stores the findings. */
#include "cmd/import_judge.h"

#include <stdlib.h>

#include "analyzer/analyzer.h"
#include "collector/batch.h"
#include "collector/state_rows.h"
#include "lib/trace/ring.h"
#include "lib/trace/store.h"

struct judge {
    struct import_judge judge;
    struct analyzer *analyzer;
    struct import_verdict *verdict;
    struct record_batch *batch; /* findings on their way */
    struct store *store;        /* in end() */
    struct error *err;
    uint64_t last_ns;
    int waits, speeds;
    bool failed;
};

static int fail_judge_memory(struct error *err)
{
    return error_memory(err, "can't analyse what was imported");
}

static int judge_process(void *context, int process, const struct process_info *info,
                         struct error *err)
{
    struct judge *judge = context;
    return analyzer_add_process(judge->analyzer, process, info) ? fail_judge_memory(err) : 0;
}

static int judge_record(void *context, int process, const struct record *record, struct error *err)
{
    struct judge *judge = context;
    if (judge->last_ns < record->time_ns)
        judge->last_ns = record->time_ns;
    return analyzer_feed(judge->analyzer, process, record) ? fail_judge_memory(err) : 0;
}

static void judge_finding(void *context, const struct finding *finding)
{
    struct judge *judge = context;
    judge->failed |= batch_add_finding(judge->batch, finding) != 0;
    if (finding->state == FINDING_OPEN) {
        judge->verdict->errors += finding->severity == SEVERITY_ERROR;
        judge->verdict->warnings += finding->severity == SEVERITY_WARNING;
    }
}

static void store_judged_member(void *context, const struct member_state *view)
{
    struct judge *judge = context;
    if (!judge->failed)
        judge->failed = store_member(judge->store, view, judge->last_ns, judge->err) < 0;
}

static void store_judged_wait(void *context, const struct wait_view *view)
{
    struct judge *judge = context;
    const struct store_wait wait = wait_row(view, judge->waits++);
    if (!judge->failed)
        judge->failed = store_wait(judge->store, &wait, judge->err) < 0;
}

static void store_judged_speed(void *context, const struct speed_standing_view *view)
{
    struct judge *judge = context;
    char trend[TREND_BYTES];
    const struct store_speed row = speed_row(view, judge->speeds++, trend);
    if (!judge->failed)
        judge->failed = store_speed(judge->store, &row, judge->err) < 0;
}

static int end_judgement(void *context, struct store *store, struct error *err)
{
    struct judge *judge = context;
    judge->store = store;
    judge->err = err;
    *err = (struct error){{0}};
    if (analyzer_finish(judge->analyzer))
        return fail_judge_memory(err);
    analyzer_visit_findings(judge->analyzer, judge_finding, judge);
    if (judge->failed)
        return fail_judge_memory(err);
    if (batch_write(judge->batch, store, err))
        return -1;
    analyzer_visit_members(judge->analyzer, store_judged_member, judge);
    if (!judge->failed && analyzer_visit_waits(judge->analyzer, store_judged_wait, judge))
        return fail_judge_memory(err);
    analyzer_visit_speed_standings(judge->analyzer, store_judged_speed, judge);
    bool is_whole = !analyzer_skipped(judge->analyzer) &&
                    !analyzer_forgotten_comms(judge->analyzer);
    if (!judge->failed && is_whole) /* a report need not do it again */
        judge->failed = store_meta(store, "judged", DDPCHECK_VERSION, err) < 0;
    return judge->failed ? -1 : 0;
}

const struct import_judge *import_judge_new(struct import_verdict *verdict, struct error *err)
{
    struct judge *judge = calloc(1, sizeof *judge);
    *verdict = (struct import_verdict){0};
    if (judge && (judge->analyzer = analyzer_new(NULL)) && (judge->batch = batch_new())) {
        judge->verdict = verdict;
        judge->judge = (struct import_judge){.process = judge_process,
                                             .record = judge_record,
                                             .end = end_judgement,
                                             .context = judge};
        return &judge->judge;
    }
    import_judge_free(judge ? &judge->judge : NULL);
    fail_judge_memory(err);
    return NULL;
}

void import_judge_free(const struct import_judge *judge)
{
    struct judge *whole = (struct judge *)judge;
    if (!whole)
        return;
    analyzer_free(whole->analyzer);
    batch_free(whole->batch);
    free(whole);
}
