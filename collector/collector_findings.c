/* collector_findings.c: sends `ddpcheck run` each finding once, with ranks and fix. */
#include <stdlib.h>
#include <string.h>

#include "collector/collector.h"
#include "collector/collector_notify.h"
#include "collector/collector_state.h"
#include "collector/symbolizer.h"
#include "lib/base/text.h"
#include "lib/finding/fault.h"
#include "lib/finding/finding_details.h"
#include "lib/finding/finding_site.h"
#include "lib/finding/finding_origin.h"

enum { LOCATION_WIDTH = FINDING_LOCATION_WIDTH, LOCATION_BYTES = 256 };

bool collector_shows(const struct collector *collector, const struct finding *finding)
{
    const struct collector_options *options = &collector->options;
    return !collector_job_leaves(collector, finding) &&
           options->is_shown(options->context, finding, symbolizer_trace(collector->symbolizer));
}

void collector_mark_notified(struct collector *collector, const struct finding *finding)
{
    int id = (int)finding->id;
    bool is_open = finding->state == FINDING_OPEN;
    if (rankset_add(is_open ? &collector->notified.all : &collector->notified.withdrawn, id) ||
        (is_open && finding->certainty == CERTAIN && rankset_add(&collector->notified.certain, id)))
        collector->memory_short = true;
}

void collector_forget_notified(struct collector *collector)
{
    rankset_free(&collector->notified.all);
    rankset_free(&collector->notified.certain);
    rankset_free(&collector->notified.withdrawn);
}

struct same_fault {
    const struct collector *collector;
    const struct finding *finding;
    struct fault_key fault;
    bool is_known;
};

static void find_same_fault(void *context, const struct finding *other)
{
    struct same_fault *same = context;
    const struct collector *collector = same->collector;
    int id = (int)other->id;
    bool same_certainty = same->finding->certainty == POSSIBLE ||
                          rankset_has(&collector->notified.certain, id);
    if (same->is_known || other->id == same->finding->id || !same_certainty ||
        other->code != same->finding->code || !rankset_has(&collector->notified.all, id) ||
        rankset_has(&collector->notified.withdrawn, id))
        return;
    struct fault_key fault = fault_of(symbolizer_trace(collector->symbolizer), other);
    fault.certainty = same->fault.certainty; /* compared above */
    same->is_known = fault_is_same(&fault, &same->fault);
}

/* Another finding of the same fault was reported and stands. */
static bool is_known_fault(struct collector *collector, const struct finding *finding)
{
    struct same_fault same = {.collector = collector,
                              .finding = finding,
                              .fault = fault_of(symbolizer_trace(collector->symbolizer), finding)};
    analyzer_visit_findings(collector->analyzer, find_same_fault, &same);
    return same.is_known;
}

static void notify_detail(void *context, const char *line)
{
    const struct collector *collector = context;
    notify(collector->options.notify_fd, "more %s", line);
}

/* "finding 7 error possible DC201 train.c:176 | ranks 0-2 wait in ...": once for each, and again
 * when a possible one turns out to be certain; "withdrawn 7 ..." when one that was reported is
 * over. */
static void notify_finding(struct collector *collector, const struct finding *finding)
{
    struct trace *trace = symbolizer_trace(collector->symbolizer);
    char location[LOCATION_BYTES] = "";
    int id = (int)finding->id;
    bool is_open = finding->state == FINDING_OPEN;
    struct rankset *done = is_open ? &collector->notified.all : &collector->notified.withdrawn;
    if (is_open && finding->certainty == CERTAIN)
        done = &collector->notified.certain;
    bool was_open = rankset_has(&collector->notified.all, id);
    if (rankset_has(done, id) || (!is_open && !was_open) || !collector_shows(collector, finding))
        return;
    if (is_known_fault(collector, finding)) {
        collector_mark_notified(collector, finding);
        return;
    }
    if (trace)
        finding_location(trace, finding, LOCATION_WIDTH, location, sizeof location);
    if (is_open && finding->severity == SEVERITY_ERROR)
        finding_details(trace, finding, notify_detail, collector);
    char *sentence = finding_sentence(trace, finding);
    notify(collector->options.notify_fd, "%s %d %s %s %s %s | %s",
           is_open ? "finding" : "withdrawn", id, severity_name(finding->severity),
           certainty_name(finding->certainty), code_name(finding->code), location,
           sentence ? sentence : finding->what);
    free(sentence);
    collector_mark_notified(collector, finding);
}

void collector_notify_findings(struct collector *collector)
{
    if (collector->options.notify_fd < 0)
        return;
    for (const struct batch_finding *changed = collector->batch->findings; changed;
         changed = changed->next)
        notify_finding(collector, &changed->finding);
}

static void notify_left(void *context, const struct finding *finding)
{
    notify_finding(context, finding);
}

void collector_notify_left(struct collector *collector)
{
    if (collector->options.notify_fd >= 0)
        analyzer_visit_findings(collector->analyzer, notify_left, collector);
}
