/* collector_damage.c: a database that was damaged while the job is recorded is set aside, and
 * another goes on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/collector.h"
#include "collector/collector_state.h"
#include "collector/symbolizer.h"
#include "lib/trace/trace.h"

enum { COPIED_AT_ONCE = 4096, TRIES = 100 };

/* No name that ends in .db: the directory's trace is the new one alone. */
int collector_set_database_aside(const struct collector *collector, const struct error *why,
                                 char aside[PATH_MAX], struct error *err)
{
    const struct error reason = *why;
    char log[PATH_MAX], log_aside[PATH_MAX + 4];
    for (int i = 1; i <= TRIES; i++) {
        if (snprintf(aside, PATH_MAX, "%s.damaged-%d", collector->database, i) >= PATH_MAX - 4 ||
            access(aside, F_OK) == 0)
            continue;
        if (rename(collector->database, aside) < 0)
            return error_set(err, "%s; it can't be moved to %s", reason.text, aside);
        snprintf(log, sizeof log, "%s-wal", collector->database);
        snprintf(log_aside, sizeof log_aside, "%s-wal", aside);
        rename(log, log_aside);
        snprintf(log, sizeof log, "%s-shm", collector->database);
        unlink(log);
        fprintf(stderr,
                "ddpcheck: %s: the database is damaged; it is moved to %s, and a new one goes on "
                "with what can be read of it\n",
                reason.text, aside);
        return 0;
    }
    return error_set(err, "%s; there is no name left to move it to", reason.text);
}

struct copied {
    struct record record[COPIED_AT_ONCE];
    int process[COPIED_AT_ONCE];
};

static int store_copied(struct collector *collector, const struct copied *copied, int count,
                        struct error *err)
{
    if (store_begin(collector->store, err) < 0 ||
        store_events(collector->store, copied->process, copied->record, count, err) < 0 ||
        store_commit(collector->store, err) < 0) {
        store_rollback(collector->store);
        return -1;
    }
    return 0;
}

/* All up to the damage. What is missing behind it shows by the records' serials. */
static int copy_records(struct collector *collector, const char *aside, struct error *err)
{
    struct trace *trace;
    struct error unreadable;
    struct copied *copied = malloc(sizeof *copied);
    int result = 0, count = 0;
    if (!copied)
        return error_memory(err, "can't go on with %s", collector->database);
    if (trace_open(&trace, &aside, 1, &unreadable) < 0) {
        free(copied);
        return 0;
    }
    while (result == 0 &&
           trace_next(trace, &copied->process[count], &copied->record[count], &unreadable) == 1) {
        if (copied->process[count] >= collector->processes.count)
            continue;
        symbolizer_note(collector->symbolizer, copied->process[count], &copied->record[count]);
        if (++count < COPIED_AT_ONCE)
            continue;
        result = store_copied(collector, copied, count, err);
        count = 0;
    }
    if (result == 0 && count)
        result = store_copied(collector, copied, count, err);
    trace_close(trace);
    free(copied);
    return result;
}

static void store_finding_again(void *context, const struct finding *finding)
{
    struct collector *collector = context;
    collector->memory_short |= batch_add_finding(collector->batch, finding) < 0;
}

static int begin_replacement(struct collector *collector, const char *aside, struct error *err)
{
    symbolizer_free(collector->symbolizer);
    collector->symbolizer = symbolizer_new(collector->database);
    if (!collector->symbolizer)
        return error_memory(err, "can't go on with %s", collector->database);
    collector_state_forget(collector->state);
    if (store_open(&collector->store, collector->database, err) < 0 ||
        collector_begin_session(collector, err) < 0)
        return -1;
    for (int i = 0; i < collector->processes.count; i++)
        if (collector_add_process(collector, &collector->processes.info[i], err) < 0)
            return -1;
    return copy_records(collector, aside, err);
}

int collector_replace_database(struct collector *collector, const struct error *why,
                               struct error *err)
{
    char aside[PATH_MAX];
    if (collector->is_replaced)
        return error_set(err, "%s", why->text); /* the new one as well: the disk is broken */
    store_close(collector->store, NULL);
    collector->store = NULL;
    collector->is_replaced = true;
    if (collector_set_database_aside(collector, why, aside, err) < 0 ||
        begin_replacement(collector, aside, err) < 0)
        return -1;
    for (int i = 0; i < collector->producer_count; i++)
        producer_forget_stored(collector->producers[i]);
    for (int i = 0; i < collector->batch->count; i++)
        symbolizer_note(collector->symbolizer, collector->batch->process[i],
                        &collector->batch->record[i]);
    analyzer_visit_findings(collector->analyzer, store_finding_again, collector);
    return 0;
}
