/* dlsym.h: the table that dlsym answers from: each intercepted name and its wrapper, by call id. */
#ifndef DDPCHECK_DLSYM_H
#define DDPCHECK_DLSYM_H

#include <stdbool.h>

#include "interpose/calls.h"

struct dlsym_entry {
    const char *name;
    void *wrapper;
    bool nccl;      /* else the CUDA runtime */
};

extern const struct dlsym_entry dlsym_entries[CALL_COUNT];

#endif
