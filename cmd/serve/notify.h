/* notify.h: lets a command or a web address hear of certain errors, each once, and of their
 * withdrawal. */
#ifndef DDPCHECK_SERVE_NOTIFY_H
#define DDPCHECK_SERVE_NOTIFY_H

#include <stddef.h>

#include "lib/base/error.h"

struct notified; /* an error that was sent */

/* Zero-initialised but for the target. */
struct notifier {
    const char *target; /* a command of the shell, or http://..., https://...; NULL: nobody */
    struct notified *sent;
    size_t count, capacity;
};

/* Whether the target can be reached by this machine's libraries. Returns 0, or -1 with err. */
int notifier_check(const char *target, struct error *err);
/* Sends what is new in a report, JSON lines as of `report --json`: one line for each certain error
 * that is open for the first time, and one with the state "resolved" for each that no longer is. A
 * command gets it on its standard input, an address as the body of a POST. Each is sent by a
 * process of its own, which says on stderr what went wrong. */
void notifier_take(struct notifier *notifier, const char *report, size_t bytes);
void notifier_free(struct notifier *notifier);

#endif
