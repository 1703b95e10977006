/* sink.h: what the files of the sink share (import.h is what readers see). */
#ifndef DDPCHECK_SINK_H
#define DDPCHECK_SINK_H

#include <uthash.h>

#include "lib/import/import.h"
#include "lib/import/sorter.h"
#include "lib/import/time_heap.h"
#include "lib/trace/ring.h"

enum {
    SINK_SOURCES =
#define SOURCE(name) 1 +
#include "lib/import/sources.def"
#undef SOURCE
        0
};

struct sink_process {
    uint64_t identity;
    int index;
    struct process_info info;
    const struct import_source *source;
    const char *title; /* its source, as people call it */
    char *file;        /* the first that reported of it */
    uint64_t key;      /* of its last record: they do not fall */
    uint64_t first_ns; /* of its first record of a known time; 0: none */
    uint64_t serial;
    uint64_t known_until_ns; /* 0: nobody said */
    uint32_t members, slots;
    int widest;     /* the ranks of its largest communicator (import_process_rank_of) */
    uint64_t group; /* the reader's number of the open one; 0 none */
    uint64_t group_serial;
    uint32_t group_thread;
    bool in_iteration;
    struct time_heap to_come;     /* how far operations will be: sink_lasting.c */
    bool reports_changes;         /* at this moment */
    uint64_t lasting, unmeasured; /* operations that are done: it is known for how long, or not */
    UT_hash_handle hh;
};

/* The communicators: what was said of them by any rank. */
struct sink_parts {
    uint64_t number,
        before; /* before: operations that this and smaller numbers have beyond one each */
    uint32_t parts;
    UT_hash_handle hh;
};
struct sink_comm {
    uint64_t id;
    int nranks;
    struct sink_parts *parts;  /* table of numbers that stand for several operations */
    struct sink_parts **order; /* the same by number, once all are known */
    uint32_t order_count;
    UT_hash_handle hh;
};

/* Work that is done in order: a stream, or what stands for one where streams are not known. */
struct lane_key {
    uint64_t stream;
    int64_t member;
};
struct lane {
    struct lane_key key;
    uint32_t slot;
    uint64_t launch, started, done, reported_started, reported_done;
    uint64_t begin_ns, end_ns; /* of its last operation with a known duration */
    struct lane *next;         /* of all */
    UT_hash_handle hh;
};

/* A peer of a member, in one direction: its messages have numbers of their own. */
struct sink_peer {
    struct lane_key key;
    uint64_t next;
    UT_hash_handle hh;
};

struct sink_member {
    struct lane_key key; /* communicator and rank */
    int index, process, rank, device;
    uint32_t ordinal; /* in its process */
    struct sink_comm *comm;
    uint64_t next;            /* number of its next collective */
    struct lane *lane;        /* of its last collective */
    struct sink_member *same; /* of another process: one rank reported by two */
    UT_hash_handle hh;
};

struct import {
    const struct import_options *options;
    const struct import_source *source; /* of the file in hand */
    void *state[SINK_SOURCES];          /* of the sources, in the order of import_sources */
    void **source_state;                /* that of the source in hand */
    struct import_input *input;
    struct import_result result;
    struct error failure;  /* the first; nothing goes on after it */
    uint64_t refused_here; /* pieces of the file in hand */
    uint32_t refusals_printed;
    struct unread_kind *unread; /* kinds of files that were passed over */
    size_t unread_count;
    uint64_t bytes; /* of files before */
    struct import_standing standing;
    uint64_t standing_before; /* bytes on disk of files before */
    struct sorter *sorter;
    struct sink_process **process;
    int processes;
    struct sink_process *process_table;
    struct sink_member **member;
    int members;
    struct sink_member *member_table;
    struct sink_comm *comms;
    struct lane *lanes, *first_lane;
    struct sink_peer *peers;
    struct import_launch last; /* call that was reported */
    uint64_t *reported; /* open addressing: texts and stacks that a process has reported already */
    uint64_t reported_count, reported_capacity;
};

/* Remembers the failure. Returns -1. */
int sink_failed(struct import *import, const struct error *err);
int sink_no_memory(struct import *import);
/* Gives the record its time, serial and place among the process's records. */
int sink_record(struct import *import, struct sink_process *process, uint64_t time_ns,
                struct record *record, uint32_t part);
/* How far operations are until then (sink_lasting.c). */
int sink_report_changes(struct import *import, struct sink_process *process, uint64_t until_ns);
/* LACKS_DURATIONS where too many operations do not say how long they took, else 0. */
uint32_t sink_lacks_durations(const struct sink_process *process);
/* What is only known at the end of all files: open groups, progress that was not reported yet,
 * until when all is known. */
int sink_finish(struct import *import);
void sink_free(struct import *import);

/* A message for people. */
void import_print(struct import *import, const char *message);

/* Stores all that was reported in a new database. 0, or -1 with import->failure. */
int sink_store(struct import *import, const char *path);
/* Prints how many refusals of the file in hand, or of all files, were not printed. */
void refusals_end_file(struct import *import);
void refusals_end(struct import *import);

#endif
