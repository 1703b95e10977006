/* ungrouped_devices.h: one thread that drives several devices and does not group their calls; a
 * handler of DC111. */
#ifndef DDPCHECK_UNGROUPED_DEVICES_H
#define DDPCHECK_UNGROUPED_DEVICES_H

#include "analyzer/check.h"

event_handler ungrouped_on_operation;

#endif
