/* ended_setup.h: a rank that ended before its first call of NCCL (DC209). */
#ifndef DDPCHECK_ENDED_SETUP_H
#define DDPCHECK_ENDED_SETUP_H

#include "analyzer/check.h"

void setup_on_finish(struct analyzer *analyzer, const struct event *event);

#endif
