/* attach_write.h: what `ddpcheck attach` saw, as a file that `ddpcheck import` reads. */
#ifndef DDPCHECK_CMD_ATTACH_WRITE_H
#define DDPCHECK_CMD_ATTACH_WRITE_H

#include <stdio.h>

#include "lib/live/live_job.h"

/* JSON lines "ddpcheck.position/1" (docs/json.md), one for each rank. Returns 0, or -1 with err. */
int attach_write(const struct live_job *job, FILE *out, struct error *err);

/* Which ranks were looked at, and what could not be had, on stderr. */
void attach_print_seen(const struct live_job *job);

#endif
