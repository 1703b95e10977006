/* failed_alone.h: a rank that failed before anybody waited for it (DC205). */
#ifndef DDPCHECK_FAILED_ALONE_H
#define DDPCHECK_FAILED_ALONE_H

#include "analyzer/check.h"

/* Reports it when the job is over, if nothing else is wrong. EVENT_FINISH. */
void failed_alone_on_finish(struct analyzer *analyzer, const struct event *event);

#endif
