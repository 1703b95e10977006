/* trace_guard.h: reads a database that may come from anybody: nothing in it can run for ever,
 * write, or reach another file. Only trace*.c include it. */
#ifndef DDPCHECK_TRACE_GUARD_H
#define DDPCHECK_TRACE_GUARD_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"

/* What a query may take, beside what its caller stops. */
struct trace_guard {
    const char *path; /* of the database; the owner's */
    uint64_t steps, limit;
    bool is_exceeded; /* the last query that was interrupted took more steps than its file allows */
    int (*is_stopped)(void *context); /* NULL: nobody stops it */
    void *context;
};

/* Protects a connection that was just opened, and keeps *guard until it is closed. */
void trace_guard_connection(sqlite3 *db, struct trace_guard *guard);

/* Checks that what readers read are plain tables: a view in place of one could go on for ever, a
 * table of a module, or columns that are computed, could do anything. Views are not read any more
 * from then on. Returns 0, or -1 with err. */
int trace_guard_tables(sqlite3 *db, const char *path, struct error *err);

#endif
