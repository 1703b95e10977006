/* dlsym.h: the table that dlsym answers from: each intercepted name and its wrapper, by call id. */
#ifndef DDPCHECK_DLSYM_H
#define DDPCHECK_DLSYM_H

#include "interpose/calls/calls.h"
#include "interpose/calls/resolve.h"

struct dlsym_entry {
    const char *name;
    void *wrapper;
    enum library library;
};

extern const struct dlsym_entry dlsym_entries[CALL_COUNT];

/* The call of this symbol, or -1. */
int dlsym_find(const char *name);

#endif
