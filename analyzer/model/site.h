/* site.h: where and when a call was made. */
#ifndef DDPCHECK_SITE_OF_CALL_H
#define DDPCHECK_SITE_OF_CALL_H

#include <stdbool.h>
#include <stdint.h>

struct process;

struct site {
    struct process *process;
    uint64_t stack;
    uint64_t phase; /* string id of the innermost NVTX range, 0 none */
    uint64_t time_ns;
    bool stack_is_address;
};

#endif
