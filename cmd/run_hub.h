/* run_hub.h: how `ddpcheck run` finds the hub of its job.
 *
 * With --hub auto the first process of the launcher starts a hub and writes its address, which
 * contains the token, into DIR/hub-JOB.url (0600) of the trace directory. The others wait for that
 * file. Where hosts share no directory, all of them have to have the same DDPCHECK_HUB_TOKEN: then
 * the address is that of the first host by the launcher's variables. docs/jobs.md has both. */
#ifndef DDPCHECK_RUN_HUB_H
#define DDPCHECK_RUN_HUB_H

#include <sys/types.h>

#include "lib/base/error.h"

struct run_hub;

/* hub: an address, or "auto"; argv: the program that is run. Returns 0 (run_hub_close it), or -1
 * with err. */
int run_hub_open(struct run_hub **hub, const char *address, const char *directory,
                 char *const *argv, struct error *err);
const char *run_hub_url(const struct run_hub *hub);
/* Its process if this run started it, else 0, also for NULL. */
pid_t run_hub_pid(const struct run_hub *hub);
/* Ends the hub that was started: once its job is over, after 1 s if no host has come to it, or
 * after 10 s. NULL is allowed. */
void run_hub_close(struct run_hub *hub);

#endif
