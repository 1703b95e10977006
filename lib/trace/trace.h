/* trace.h: reads one or several trace databases as one stream of events.
 *
 * Read-only; a database that is being written is read as it was when it was opened (and again after
 * trace_refresh). Several databases (one per host) are merged by time. */
#ifndef DDPCHECK_TRACE_H
#define DDPCHECK_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/trace/record.h"
#include "lib/trace/ring.h"

struct trace;

/* Opens databases; each path is a database or a directory whose *.db are taken. A file that is no
 * trace or of a newer schema is an error that names it; so is one that is cut off before its first
 * event (one that is cut later gives its whole records, then trace_next fails). Returns 0, or -1
 * with err. */
int trace_open(struct trace **trace, const char *const *paths, int count, struct error *err);
void trace_close(struct trace *trace);

/* Of a program that nothing was recorded of: statically linked NCCL is called unseen. */
#define TRACE_NO_NCCL_CALL "made no NCCL call that ddpcheck saw"
/* Returns 0 if a directory has a database, or else -1 with err: why not, and what to do. */
int trace_find_database(const char *directory, struct error *err);

/* Whether something is there that is no trace, holds none, and nothing that a trace is made of: a
 * file that is no database by name or content, a pipe, or a directory that has only other things.
 */
bool trace_is_strange(const char *path);

/* Processes are numbered 0 .. count-1 over all databases. The info is the trace's. */
int trace_process_count(const struct trace *trace);
const struct process_info *trace_process(const struct trace *trace, int process);

/* The next event in order: 1, 0 at the end, -1 with err (a damaged page: what came before is good;
 * the next call goes on with the other databases). */
int trace_next(struct trace *trace, int *process, struct record *record, struct error *err);
/* Looks for rows and processes that came since; trace_next goes on with them. Returns how many
 * processes are new, or -1 with err. */
int trace_refresh(struct trace *trace, struct error *err);
uint64_t trace_event_count(struct trace *trace); /* rows so far, for progress and --json */

struct trace_dropped {
    uint64_t records, calls; /* calls: of the records, finished calls; the others are CUDA's */
    uint64_t until_ns;
};
/* How many records the collectors dropped to stay within --keep, and until when (realtime; 0: none
 * were dropped). What happened before can't be checked again. */
struct trace_dropped trace_dropped(struct trace *trace);

/* The number from which on all collectives of a member are there; 0 if none of them was dropped.
 * What is left of earlier ones are calls that findings name. */
uint64_t trace_member_start(struct trace *trace, int process, uint64_t comm, int rank);

/* True if the collector of every database ended in order (else the trace may go on, or was cut). */
bool trace_complete(struct trace *trace);

/* How many processes the collectors knew of and could not record (descriptors or memory ran out).
 */
int trace_unrecorded(struct trace *trace);

/* The silence that the collectors took for a hang (--hang-after), the shortest of several; 0 if
 * they do not say: the analyzer's usual. A reader that takes the same finds the same. */
uint64_t trace_hang_after_ns(struct trace *trace);
/* One of the databases is a hub's, of a job on many hosts: of each process it has some records
 * only.
 */
bool trace_is_job(struct trace *trace);

/* When the hub of a job was there last (realtime; 0: none of the databases is a hub's). While the
 * job gets on a hub stores no events. */
uint64_t trace_alive_ns(struct trace *trace);

/* A host whose clock was off by more than a second. */
struct trace_clock {
    const char *host;
    int64_t offset_ns; /* that its times got added */
    bool is_by_hub;    /* to have those of the hub's clock; else of most other hosts' */
};

/* Calls `visit` for each. The hub of a job has found it out, or, where several databases are read,
 * the collectives that their hosts took part in show it. */
void trace_visit_clocks(struct trace *trace,
                        void (*visit)(void *context, const struct trace_clock *clock),
                        void *context);

/* The databases themselves, for queries of a reader's own; read-only, the trace's. A process that a
 * database calls p is trace_process_of(trace, i, p), -1 if it is not known yet. */
struct sqlite3;
int trace_database_count(const struct trace *trace);
/* Lets it open all files that its modules name, also behind links: for the trace that this process
 * itself writes. */
void trace_is_own(struct trace *trace);
/* Ends queries on its databases as interrupted while is_stopped(context) is not 0; it is called
 * every few hundred microseconds of a query, until the trace is closed. */
void trace_stop_on(struct trace *trace, int (*is_stopped)(void *context), void *context);
struct sqlite3 *trace_database(const struct trace *trace, int database);
const char *trace_database_path(const struct trace *trace, int database);
/* Its part of what trace_process_count, trace_event_count, trace_complete and trace_unrecorded say.
 */
int trace_database_processes(const struct trace *trace, int database);
uint64_t trace_database_events(const struct trace *trace, int database);
bool trace_database_complete(struct trace *trace, int database);
int trace_database_unrecorded(struct trace *trace, int database);
/* The value of a key of its table meta, which the caller frees; NULL if there is none. */
char *trace_database_meta(struct trace *trace, int database, const char *key);
int trace_process_of(const struct trace *trace, int database, int process);

/* The text of an interned string of a process, NULL if unknown. Valid until trace_close. */
const char *trace_string(struct trace *trace, int process, uint64_t id);

/* The version of a library ("NCCL", "PyTorch") that the process has, 21000 for 2.10.0; 0 not
 * known. */
int trace_library_version(struct trace *trace, int process, const char *name);
/* Calls `visit` with each variable, version, library file and fact of the host that is known of the
 * process, in order of names; value "": the program removed the variable. */
void trace_environment(struct trace *trace, int process,
                       void (*visit)(void *context, const char *name, const char *value,
                                     const char *set_by),
                       void *context);

struct frame {
    uint64_t address; /* 0: a Python frame, which has file and function */
    /* Empty: not known. Where the function is not known, module may say the place:
     * "libfoo.so+0x1234". */
    char module[256], function[1024], file[256]; /* function: of C++ mangled, which may be long */
    int line;                                    /* 0: not known */
};
/* Of one address, which stands for as many frames as functions were inlined there, are kept. */
enum { ADDRESS_FRAMES_MAX = 12 };
/* The frames of record.stack, innermost first; is_address: RECORD_FLAG_ADDRESS. Python frames,
 * where there are any, come first, the native frames beneath them after them. Returns how many (<=
 * max). */
int trace_frames(struct trace *trace, int process, uint64_t stack, bool is_address,
                 struct frame *frames, int max);

#endif
