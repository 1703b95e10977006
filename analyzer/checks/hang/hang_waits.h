/* hang_waits.h: finds what is stuck among the waits, for all checks of hangs. */
#ifndef DDPCHECK_HANG_WAITS_H
#define DDPCHECK_HANG_WAITS_H

#include "analyzer/check.h"

/* The handler of EVENT_WAITS; its first check by code, DC201, has it. */
event_handler hang_on_waits;

#endif
