/* host_calls.h: which calls and ranges every host thread is in, so that an end finds its beginning,
 * and the lost end of what was inside of it is made up for. */
#ifndef DDPCHECK_EXPORT_HOST_CALLS_H
#define DDPCHECK_EXPORT_HOST_CALLS_H

#include <stdint.h>

struct call_host;

/* Zero-initialised: nobody is in anything. */
struct host_calls {
    struct call_host *host; /* by process and thread */
};

/* The thread enters what `serial` identifies. Returns 1; 0 if it is in too much already, and this
 * will have no end; -1 when memory is short. */
int host_calls_begin(struct host_calls *calls, int process, uint32_t thread, uint64_t serial,
                     uint64_t time_ns);

/* The thread leaves it, and what was begun inside of it with it. Returns how many beginnings are
 * over by that, 0 if it was in none of this serial; *entered_ns is when it was entered. */
int host_calls_end(struct host_calls *calls, int process, uint32_t thread, uint64_t serial,
                   uint64_t *entered_ns);

void host_calls_free(struct host_calls *calls);

#endif
