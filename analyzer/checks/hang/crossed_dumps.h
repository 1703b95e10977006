/* crossed_dumps.h: DC202 of dumps in which every call was issued, in different orders. */
#ifndef DDPCHECK_CROSSED_DUMPS_H
#define DDPCHECK_CROSSED_DUMPS_H

#include "analyzer/model/comm.h"

/* Two communicators whose first unfinished operations every rank has issued, some in one order,
 * others in the other. False if there are none. */
bool crossed_dumps_report(struct analyzer *analyzer);

#endif
