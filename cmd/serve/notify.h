/* notify.h: lets a command or a web address hear of certain errors, each once, and of their
 * withdrawal. */
#ifndef DDPCHECK_SERVE_NOTIFY_H
#define DDPCHECK_SERVE_NOTIFY_H

#include <stddef.h>

struct notified; /* a finding that was sent */
struct otlp;

/* Zero-initialised but for the first two. */
struct notifier {
    const char *target;      /* of send_text; NULL: nobody hears */
    const struct otlp *otlp; /* NULL: JSON of certain errors; else log records of all findings */
    struct notified *sent;
    size_t count, capacity;
};

/* Sends what is new in a report, JSON lines as of `report --json`: one line for each certain error
 * that is open for the first time, and one with the state "resolved" for each that no longer is. */
void notifier_take(struct notifier *notifier, const char *report, size_t bytes);
void notifier_free(struct notifier *notifier);

#endif
