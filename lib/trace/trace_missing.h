/* trace_missing.h: why a directory holds no trace. */
#ifndef DDPCHECK_TRACE_MISSING_H
#define DDPCHECK_TRACE_MISSING_H

#include "lib/base/error.h"

/* Says what is there instead of a database, and what to do. Returns -1. */
int trace_missing(const char *directory, struct error *err);

/* Whether something was ever recorded into the directory. Returns 0, or -1 with what is there
 * instead and what to do. */
int trace_check_directory(const char *directory, struct error *err);

#endif
