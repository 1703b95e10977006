/* hub_news.c: sends the job's findings to the hosts, each with the line where it is. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/hub_internal.h"
#include "lib/base/clock.h"
#include "lib/finding/fault.h"
#include "lib/finding/finding_details.h"
#include "lib/finding/finding_origin.h"
#include "lib/finding/finding_site.h"
#include "lib/trace/trace.h"

enum { ASKED_OF_SIDE = 64 };
static const uint64_t names_patience_ns = 1500000000; /* before a finding is sent without */
static const uint64_t names_give_up_ns = 10000000000; /* and before they are no longer expected */

void hub_publish(struct hub *hub, enum item_kind kind, const void *item)
{
    message_clear(&hub->writer);
    message_add(&hub->writer, kind, item);
    transport_publish(hub->options.transport, CHANNEL_NEWS, hub->writer.data, hub->writer.bytes,
                      NULL);
}

void hub_news_add(struct hub *hub, const struct finding *finding)
{
    struct hub_news *news = hub->news;
    struct finding copy;
    if (finding->severity == SEVERITY_NOTE && finding->state == FINDING_OPEN)
        return; /* one that is taken back is a note, too */
    while (news && news->finding.id != finding->id)
        news = news->next;
    if (finding_copy(&copy, finding) < 0) {
        hub_drop_for_memory(hub, "a finding's line");
        return;
    }
    if (!news) {
        if (!(news = calloc(1, sizeof *news))) {
            finding_free(&copy);
            hub_drop_for_memory(hub, "a finding's line");
            return;
        }
        news->next = hub->news;
        hub->news = news;
    } else {
        finding_free(&news->finding);
    }
    if (!news->changed)
        news->since_ns = hub->now_ns;
    news->finding = copy;
    news->changed = true;
}

struct trace *hub_open_trace(struct hub *hub)
{
    const char *path = hub->database;
    bool ready = hub->trace ? trace_refresh(hub->trace, NULL) >= 0
                            : trace_open(&hub->trace, &path, 1, NULL) == 0;
    return ready ? hub->trace : NULL;
}

static void add_news_line(void *context, const char *line)
{
    struct item_news *item = context;
    size_t used = strlen(item->details);
    snprintf(item->details + used, sizeof item->details - used, "%s%s", used ? "\n" : "", line);
}

/* Of each group of ranks some: where all of a large job stand nobody reads. */
static void choose_asked(const struct finding *finding, char *text, size_t bytes)
{
    struct rankset asked = {0};
    for (int i = 0; i < finding->sides; i++) {
        const struct rankset *ranks = &finding->side[i].ranks;
        int rank = rankset_next(ranks, 0);
        for (int n = 0; rank >= 0 && n < ASKED_OF_SIDE; rank = rankset_next(ranks, rank + 1), n++)
            if (rankset_add(&asked, rank))
                break; /* fewer are asked */
    }
    if (rankset_next(&asked, 0) >= 0)
        rankset_text(&asked, text, bytes);
    rankset_free(&asked);
}

static struct item_news describe_news(const struct finding *finding, struct trace *trace)
{
    struct item_news item = {.comm = finding->comm,
                             .fingerprint = finding->fingerprint,
                             .id = finding->id,
                             .severity = (uint8_t)finding->severity,
                             .certainty = (uint8_t)finding->certainty,
                             .state = (uint8_t)finding->state};
    snprintf(item.code, sizeof item.code, "%s", code_name(finding->code));
    char *sentence = finding_sentence(trace, finding);
    snprintf(item.text, sizeof item.text, "%s", sentence ? sentence : finding->what);
    free(sentence);
    if (trace)
        finding_location(trace, finding, FINDING_LOCATION_WIDTH, item.location,
                         sizeof item.location);
    if (finding->state == FINDING_OPEN && finding->severity == SEVERITY_ERROR)
        finding_details(trace, finding, add_news_line, &item);
    choose_asked(finding, item.asked, sizeof item.asked);
    return item;
}

/* Another finding of the same fault was sent and stands. */
static bool is_sent_fault(const struct hub *hub, const struct hub_news *news, struct trace *trace)
{
    struct fault_key fault = fault_of(trace, &news->finding);
    if (!news->finding.comm && !*fault.location)
        return false; /* of several silent hosts each is a fault */
    for (const struct hub_news *other = hub->news; other; other = other->next) {
        bool covers = other->sent.certainty == CERTAIN || news->finding.certainty == POSSIBLE;
        if (other == news || !other->sent.code[0] || other->sent.state != FINDING_OPEN || !covers ||
            other->finding.code != news->finding.code)
            continue;
        struct fault_key sent = fault_of(trace, &other->finding);
        sent.certainty = fault.certainty; /* compared above */
        if (fault_is_same(&sent, &fault))
            return true;
    }
    return false;
}

static bool has_all_names(const struct hub *hub, struct trace *trace, const struct finding *finding)
{
    for (int i = 0; i < finding->sides; i++)
        if (!hub_has_names(hub, trace, &finding->side[i]))
            return false;
    return true;
}

/* `details` alone are no news: they are printed once, below the line. */
static bool is_same_news(const struct item_news *a, const struct item_news *b)
{
    return memcmp(a, b, offsetof(struct item_news, details)) == 0;
}

/* Without all names the line would be that of a frame further out. */
static void send_news(struct hub *hub, struct hub_news *news, struct trace *trace, uint64_t now_ns,
                      bool last)
{
    uint64_t waited_ns = now_ns - news->since_ns;
    bool is_named = last || !trace || waited_ns >= names_give_up_ns ||
                    has_all_names(hub, trace, &news->finding);
    if (!is_named && waited_ns < names_patience_ns)
        return;
    struct item_news item = describe_news(&news->finding, trace);
    news->changed = !is_named; /* sent again once it has them */
    if (is_same_news(&item, &news->sent) ||
        (!news->sent.code[0] && trace &&
         (item.state != FINDING_OPEN || is_sent_fault(hub, news, trace))))
        return;
    news->sent = item;
    item.realtime_ns = news->sent_ns = realtime_now_ns();
    hub_publish(hub, ITEM_NEWS, &item);
    if (hub->options.on_news)
        hub->options.on_news(hub->options.context, &item);
}

void hub_news_resend(struct hub *hub)
{
    for (const struct hub_news *news = hub->news; news; news = news->next) {
        struct item_news item = news->sent;
        item.realtime_ns = news->sent_ns;
        if (item.code[0])
            hub_publish(hub, ITEM_NEWS, &item);
    }
}

static void send_full(struct hub *hub)
{
    const struct item_full item = {.realtime_ns = realtime_now_ns()};
    hub->found.said_full = true;
    hub_publish(hub, ITEM_FULL, &item);
}

void hub_news_send(struct hub *hub, uint64_t now_ns, bool last)
{
    struct trace *trace = NULL;
    for (struct hub_news *news = hub->news; news; news = news->next) {
        if (!news->changed)
            continue;
        if (!trace)
            trace = hub_open_trace(hub);
        send_news(hub, news, trace, now_ns, last);
    }
    if (hub->found.is_full && !hub->found.said_full) /* after these, which no host has to report */
        send_full(hub);
}

bool hub_news_waits(const struct hub *hub)
{
    for (const struct hub_news *news = hub->news; news; news = news->next)
        if (news->changed)
            return true;
    return false;
}

void hub_news_free(struct hub *hub)
{
    while (hub->news) {
        struct hub_news *next = hub->news->next;
        finding_free(&hub->news->finding);
        free(hub->news);
        hub->news = next;
    }
    trace_close(hub->trace);
}
