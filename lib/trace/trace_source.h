/* trace_source.h: one database of a trace (trace.h), read forward. Only trace*.c include it. */
#ifndef DDPCHECK_TRACE_SOURCE_H
#define DDPCHECK_TRACE_SOURCE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/trace/record.h"
#include "lib/trace/ring.h"
#include "lib/trace/trace_guard.h"

/* What of a process was dropped (table `dropped`). */
struct source_dropped {
    int process;                      /* as the database numbers them */
    uint64_t records, calls, last_ns; /* calls: of the records */
    bool is_new;                      /* not yet given to the reader */
};

struct trace_clock;

struct trace_source {
    sqlite3 *db;
    struct trace_guard *guard;
    char *path;
    sqlite3_stmt *events, *string, *frames, *python, *symbol, *inlined, *module, *library, *start,
        *environment;
    int64_t last, limit; /* rows taken; rows there were at the last refresh */
    int64_t cut_at;      /* bytes that are left of a file that was cut off; 0 whole */
    int *processes;      /* the trace's number of each process of this database */
    int process_count;
    int64_t clock_ns; /* added to the realtime of its processes; 0: its host's clock is right */
    bool has_head, damaged;
    int head_process; /* the event to come: as the database numbers processes */
    struct record head;
    struct source_dropped *dropped;
    int dropped_count;
};

/* Opens a database for reading. Returns 0, or -1 with err. */
int source_open(struct trace_source *source, const char *path, struct error *err);
/* If its collector ended in order: reads on with one descriptor instead of three, without locks.
 * For one that was just opened. Returns 0, or -1 with err. */
int source_settle(struct trace_source *source, struct error *err);
void source_close(struct trace_source *source);

/* Looks how many events there are now. Returns 0, or -1 with err. */
int source_refresh(struct trace_source *source, struct error *err);
/* Calls add(context, info) for each process that is new. add returns the trace's number of it, or
 * -1. */
int source_read_processes(struct trace_source *source,
                          int (*add)(void *context, const struct process_info *info), void *context,
                          struct error *err);

/* Reads the next event into head. Returns 1, 0 at the end, -1 with err. */
int source_fetch(struct trace_source *source, struct error *err);

/* How many processes its collector knew of and could not record. */
int source_unrecorded(struct trace_source *source);
/* The value of a key of the table meta, which the caller frees; NULL if there is none. */
char *source_meta(struct trace_source *source, const char *key);

/* True if its collector ended in order. */
bool source_complete(struct trace_source *source);
/* What its collector took for a hang; 0 if it does not say. */
uint64_t source_hang_after_ns(struct trace_source *source);
uint64_t source_alive_ns(struct trace_source *source);
void source_visit_clocks(struct trace_source *source,
                         void (*visit)(void *context, const struct trace_clock *clock),
                         void *context);
bool source_is_job(struct trace_source *source);

/* Reads again what was dropped. Returns 0, or -1 with err. */
int source_read_dropped(struct trace_source *source, struct error *err);
/* How many records that is. */
uint64_t source_count_dropped(const struct trace_source *source);
/* The next notice of what was dropped, as head. Returns 1, or 0 if there is none. */
int source_fetch_dropped(struct trace_source *source);

/* Describes SQLite's last failure on reading. Returns -1. */
int source_failed(struct trace_source *source, const char *doing, struct error *err);
/* A prepared statement, reset, made on first use; NULL if that fails. */
sqlite3_stmt *source_prepare(struct trace_source *source, sqlite3_stmt **statement,
                             const char *sql);

#endif
