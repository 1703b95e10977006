/* report_hub.h: a host's trace is a part of a job on several hosts: where its hub is, and what that
 * has found, or had reported to this host. */
#ifndef DDPCHECK_REPORT_HUB_H
#define DDPCHECK_REPORT_HUB_H

#include "cmd/report/page.h"
#include "lib/finding/finding.h"

struct trace;

enum { HUB_NEWS_MAX = 16 };

struct part_news {
    enum severity severity;
    const char *certainty, *code, *location, *what;
};

struct hub_part {
    char *address; /* of the hub, without the token; NULL: the host had none */
    char *text;    /* that the news point into */
    bool is_now;   /* it is what the hub has now; else what the host had heard */
    struct part_news news[HUB_NEWS_MAX];
    int count;
};

/* Reads it from a database of the trace, and asks the hub if it answers within a second. For
 * hub_part_free. */
void hub_part_read(struct hub_part *part, struct trace *trace, int database);
int hub_part_count(const struct hub_part *part, enum severity severity);
/* Says that this is a part, where the rest is, and what the hub had reported; nothing if there was
 * no hub. */
void hub_part_print(const struct hub_part *part, const char *hosts, struct page *page);
void hub_part_free(struct hub_part *part);

#endif
