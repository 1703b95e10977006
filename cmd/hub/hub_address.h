/* hub_address.h: whether a hub's address is one of an earlier run. */
#ifndef DDPCHECK_HUB_ADDRESS_H
#define DDPCHECK_HUB_ADDRESS_H

#include <stdbool.h>

/* Whether the host of nats://TOKEN@HOST:PORT[/JOB] says that nobody listens there. A host that does
 * not answer at all says nothing: false. */
bool hub_address_is_stale(const char *url);

#endif
