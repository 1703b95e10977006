/* left_first.h: a rank that left before its launcher terminated the others for it (DC206). */
#ifndef DDPCHECK_LEFT_FIRST_H
#define DDPCHECK_LEFT_FIRST_H

#include "analyzer/check.h"

/* Reports it when the job is over, if nothing else is wrong. EVENT_FINISH. */
void left_first_on_finish(struct analyzer *analyzer, const struct event *event);

#endif
