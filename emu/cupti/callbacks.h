/* callbacks.h: the subscriber's callbacks, for the records of activity.c. */
#ifndef DDPCHECK_EMU_CUPTI_CALLBACKS_H
#define DDPCHECK_EMU_CUPTI_CALLBACKS_H

#include <stdint.h>

/* The calling thread launches something of that correlation number: calls back, if that is enabled.
 */
void cupti_call_back(uint32_t correlation);

#endif
