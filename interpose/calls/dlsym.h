/* dlsym.h: the table that dlsym answers from: the wrapper of each intercepted name, by call id. */
#ifndef DDPCHECK_DLSYM_H
#define DDPCHECK_DLSYM_H

#include "interpose/real/resolve.h"

/* Of functions that are not the CUDA runtime's, only the default one is set. */
extern void *const dlsym_wrappers[RUNTIME_COUNT][CALL_COUNT];

/* The call of this symbol, or -1. */
int dlsym_find(const char *name);

#endif
