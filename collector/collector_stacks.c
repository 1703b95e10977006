/* collector_stacks.c: when the job hangs, asks its processes where their threads stand, and sends
 * `ddpcheck run` where the ranks are that are in no call. */
#include <string.h>

#include "collector/collector.h"
#include "collector/collector_notify.h"
#include "collector/symbolizer.h"
#include "lib/finding/finding_culprit.h"
#include "lib/finding/finding_site.h"
#include "lib/trace/names.h"
#include "lib/trace/site.h"

static const uint64_t settle_ns =
    150000000; /* the ranks that a finding names are on their way to where they wait */
static const uint64_t troubled_silence_ns =
    1000000000; /* after an error, silence is a hang sooner */
static const uint64_t usual_silence_ns = 10000000000;
static const uint64_t again_ns = 60000000000;
static const uint64_t answer_patience_ns = 2000000000;
enum { ASKED_MAX = 4, STANDING_WIDTH = 60, STANDING_BYTES = 512, RANK_BYTES = 16 };

void collector_note_record(struct collector *collector, const struct record *record,
                           uint64_t now_ns)
{
    if (record_shows_activity(record) || record->api == API_notice_progress)
        collector->hang.last_call_ns = now_ns;
}

/* DC2xx are the findings about waits that nothing ends. */
void collector_note_finding(struct collector *collector, const struct finding *finding)
{
    if (finding->state != FINDING_OPEN)
        return;
    collector->hang.troubled |= finding->severity == SEVERITY_ERROR;
    if (code_family(finding->code) == FAMILY_HANG && finding->severity != SEVERITY_NOTE &&
        !collector->hang.found_ns)
        collector->hang.found_ns = monotonic_now_ns();
}

void collector_note_job_error(struct collector *collector)
{
    collector->hang.troubled = true;
    if (!collector->hang.found_ns)
        collector->hang.found_ns = monotonic_now_ns();
}

static bool is_silent(const struct collector *collector, uint64_t now_ns)
{
    const struct hang *hang = &collector->hang;
    uint64_t silence_ns = collector->options.hang_after_ns ? collector->options.hang_after_ns
                                                           : usual_silence_ns;
    if (hang->troubled && silence_ns > troubled_silence_ns)
        silence_ns = troubled_silence_ns;
    if (!hang->last_call_ns || hang->asked_ns > hang->last_call_ns ||
        now_ns - hang->last_call_ns < silence_ns)
        return false;
    for (int i = 0; i < collector->producer_count; i++)
        if (producer_waits(collector->producers[i]))
            return true;
    return false;
}

static void ask_all(struct collector *collector)
{
    for (int i = 0; i < collector->producer_count; i++) {
        struct producer *producer = collector->producers[i];
        producer->asked = producer->reader && !producer->liveness.ended;
        producer->main_stack = 0;
        if (producer->asked)
            ring_reader_ask(producer->reader);
    }
}

void collector_ask_stacks(struct collector *collector, uint64_t now_ns)
{
    struct hang *hang = &collector->hang;
    bool found = hang->found_ns && now_ns > hang->found_ns + settle_ns;
    if (!found && !is_silent(collector, now_ns))
        return;
    bool same_hang = hang->asked && hang->asked_ns > hang->last_call_ns;
    if (same_hang || hang->asked == ASKED_MAX)
        hang->found_ns = 0;
    if (same_hang || hang->asked == ASKED_MAX ||
        (hang->asked && now_ns - hang->asked_ns < again_ns))
        return;
    hang->found_ns = 0;
    hang->asked++;
    hang->asked_ns = now_ns;
    hang->answers_awaited = true;
    ask_all(collector);
}

void collector_ask_last_stacks(struct collector *collector, uint64_t now_ns)
{
    struct hang *hang = &collector->hang;
    if (hang->asked && hang->asked_ns > hang->last_call_ns)
        return; /* they stand where they stood then */
    hang->asked_ns = now_ns;
    hang->answers_awaited = true;
    ask_all(collector);
}

static bool have_all_answered(const struct collector *collector)
{
    for (int i = 0; i < collector->producer_count; i++)
        if (collector->producers[i]->asked && !collector->producers[i]->liveness.ended)
            return false;
    return true;
}

bool collector_has_stacks(const struct collector *collector, uint64_t now_ns)
{
    return now_ns - collector->hang.asked_ns > answer_patience_ns || have_all_answered(collector);
}

static const struct producer *find_producer(const struct collector *collector, int process)
{
    for (int i = 0; i < collector->producer_count; i++)
        if (collector->producers[i]->process == process)
            return collector->producers[i];
    return NULL;
}

/* Who the others wait for is placed; of another rank it is said where it is. `is_due` false: only
 * whether that is known. */
static bool notify_side_standing(const struct collector *collector, const struct finding *finding,
                                 int index, bool is_due)
{
    const struct finding_side *side = &finding->side[index];
    const struct producer *producer = find_producer(collector, side->process);
    struct trace *trace = symbolizer_trace(collector->symbolizer);
    char place[STANDING_BYTES], rank[RANK_BYTES], words[CULPRIT_BYTES];
    struct shown_frames where;
    if (!trace || !producer || !analyzer_is_one_rank(collector->analyzer, side->process))
        return true; /* it will not be known */
    site_shown_frames(trace, side->process, producer->main_stack, producer->main_stack_is_address,
                      &where);
    if (index == finding_culprit(finding))
        finding_culprit_last_line(trace, finding, &where);
    if (where.shown < 0 || !is_due)
        return where.shown >= 0;
    if (index == finding_culprit(finding))
        notify(collector->options.notify_fd, "state %s",
               finding_culprit_words(trace, finding, &where,
                                     finding_wait_ns(finding, realtime_now_ns()), words));
    else
        notify(collector->options.notify_fd, "state %s is at %s",
               rankset_words(&side->ranks, rank, sizeof rank),
               site_user_line(trace, side->process, producer->main_stack,
                              producer->main_stack_is_address, STANDING_WIDTH, place,
                              sizeof place));
    return true;
}

struct standing_news {
    const struct collector *collector;
    bool is_due, is_known, is_found; /* is_found: there is such a finding */
};

static void notify_finding_standing(void *context, const struct finding *finding)
{
    struct standing_news *news = context;
    const struct collector *collector = news->collector;
    int id = (int)finding->id;
    if (finding->state != FINDING_OPEN || finding->severity != SEVERITY_ERROR ||
        !rankset_has(&collector->notified.all, id) ||
        rankset_has(&collector->notified.withdrawn, id))
        return;
    news->is_found = true;
    for (int i = 0; i < finding->sides; i++) {
        const struct finding_side *side = &finding->side[i];
        if (did_not_call(side->now.did) && !side->where_stack && rankset_count(&side->ranks) == 1)
            news->is_known &= notify_side_standing(collector, finding, i, news->is_due);
    }
}

/* The finding may come after the stacks, and the functions of a stack that has just come may not be
 * known yet. */
void collector_notify_standing(struct collector *collector, uint64_t now_ns)
{
    struct hang *hang = &collector->hang;
    struct standing_news news = {.collector = collector, .is_known = true};
    bool is_late = now_ns > hang->asked_ns + answer_patience_ns;
    if (!hang->answers_awaited || collector->options.notify_fd < 0 ||
        (!have_all_answered(collector) && !is_late))
        return;
    analyzer_visit_findings(collector->analyzer, notify_finding_standing, &news);
    if (!news.is_found || (!news.is_known && !is_late))
        return;
    hang->answers_awaited = false;
    news.is_due = true;
    analyzer_visit_findings(collector->analyzer, notify_finding_standing, &news);
}
