/* trace_missing.h: why a directory holds no trace. */
#ifndef DDPCHECK_TRACE_MISSING_H
#define DDPCHECK_TRACE_MISSING_H

#include "lib/base/error.h"

/* Says what is there instead of a database, and what to do. Returns -1. */
int trace_missing(const char *directory, struct error *err);

#endif
