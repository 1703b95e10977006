/* findings_kept.c: the list of findings, in order of their id: how long it gets, and all of it, the
 * worst first. */
#include "analyzer/findings.h"

#include <stdlib.h>

#include "analyzer/model/array.h"
#include "lib/base/invariant.h"

struct reported *findings_of(const struct analyzer *analyzer, uint32_t id)
{
    uint32_t low = 0, high = analyzer->reported_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (analyzer->reported[middle].finding.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    invariant(low + 1 >= analyzer->reported_count ||
                  analyzer->reported[low].finding.id < analyzer->reported[low + 1].finding.id,
              "findings are kept in the order of their ids");
    bool found = low < analyzer->reported_count && analyzer->reported[low].finding.id == id;
    return found ? &analyzer->reported[low] : NULL;
}

static bool may_be_dropped(const struct reported *reported)
{
    return reported->finding.state == FINDING_RESOLVED && !reported->over;
}

static inline bool is_error_open(const struct reported *reported)
{
    return reported->finding.severity == SEVERITY_ERROR && reported->finding.state == FINDING_OPEN;
}

/* A job that is late at ever new places has ever more findings that it got over. They are moved
 * when twice as many are there as are kept, which costs little for each. */
static void drop_oldest_resolved(struct analyzer *analyzer)
{
    uint32_t resolved = 0, kept = 0;
    for (uint32_t i = 0; i < analyzer->reported_count; i++)
        resolved += may_be_dropped(&analyzer->reported[i]);
    if (resolved < 2 * FINDINGS_MAX)
        return;
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        struct reported *reported = &analyzer->reported[i];
        if (resolved <= FINDINGS_MAX || !may_be_dropped(reported)) {
            analyzer->reported[kept++] = *reported;
            continue;
        }
        invariant(!is_error_open(reported), "an error that is open is never dropped");
        resolved--;
        if (reported->notified_times != reported->finding.times)
            findings_notify(analyzer, reported);
        finding_free(&reported->finding);
        rankset_free(&reported->processes);
    }
    analyzer->reported_count = kept;
}

struct reported *findings_room(struct analyzer *analyzer)
{
    drop_oldest_resolved(analyzer);
    struct reported *grown = array_room(analyzer->reported, sizeof *grown, analyzer->reported_count,
                                        &analyzer->reported_capacity, 16);
    if (!grown)
        return NULL;
    analyzer->reported = grown;
    return &analyzer->reported[analyzer->reported_count++];
}

void findings_flush(struct analyzer *analyzer)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++)
        if (analyzer->reported[i].notified_times != analyzer->reported[i].finding.times)
            findings_notify(analyzer, &analyzer->reported[i]);
}

void findings_free(struct analyzer *analyzer)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        finding_free(&analyzer->reported[i].finding);
        rankset_free(&analyzer->reported[i].processes);
    }
    free(analyzer->reported);
}

static int worse_first(const void *left, const void *right)
{
    return finding_compare(*(const struct finding *const *)left,
                           *(const struct finding *const *)right);
}

void analyzer_visit_findings(struct analyzer *analyzer,
                             void (*visit)(void *context, const struct finding *finding),
                             void *context)
{
    const struct finding **sorted = calloc(analyzer->reported_count + 1, sizeof(*sorted));
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        if (sorted)
            sorted[i] = &analyzer->reported[i].finding;
        else
            visit(context,
                  &analyzer->reported[i].finding); /* memory is short: in order of their coming */
    }
    if (sorted)
        qsort(sorted, analyzer->reported_count, sizeof(*sorted), worse_first);
    for (uint32_t i = 0; sorted && i < analyzer->reported_count; i++)
        visit(context, sorted[i]);
    free(sorted);
}
