/* send.h: gives a text to a command, or posts it to a web address. */
#ifndef DDPCHECK_SERVE_SEND_H
#define DDPCHECK_SERVE_SEND_H

#include "lib/base/error.h"

/* Whether the target can be reached by this machine's libraries; NULL: there is none. Returns 0, or
 * -1 with err. */
int send_check(const char *target, struct error *err);

/* Starts a process that nobody waits for, and returns. http:// and https:// get the text, which is
 * JSON, as the body of a POST with `headers`: "Name: value", NULL at the end; NULL: none. Any
 * other target is a command of the shell, which reads the text. The process says on stderr what
 * went wrong with `what`: "a finding as --notify asks". */
void send_text(const char *target, const char *const *headers, const char *text, const char *what);

#endif
