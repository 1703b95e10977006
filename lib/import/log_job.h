/* log_job.h: the job that a log describes: its processes and communicators while the log is read
 * line by line.
 *
 * Functions return 0, or -1 when memory or the import's disk is short. */
#ifndef DDPCHECK_IMPORT_LOG_JOB_H
#define DDPCHECK_IMPORT_LOG_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/import/import.h"
#include "lib/import/log_event.h"
#include "lib/import/log_line.h"
#include "lib/import/log_torch.h"

struct log_process;
struct log_comm;
struct log_watched;
struct log_messages;
struct log_tracebacks;
struct log_elastic;
struct log_wrapped;
struct log_stacks;
struct log_ras;
struct log_stalls;

/* A call on a communicator that has no name yet. */
struct log_held {
    uint32_t unnamed; /* which of log_job.unnamed */
    struct import_call call;
};

/* A communicator of which NCCL did not print what identifies it (before 2.16). */
struct log_unnamed {
    struct log_process *process;
    int rank, nranks, device,
        ordinal;  /* ordinal: of the process's communicators of that size and rank */
    bool by_hint; /* no line of NCCL's says its rank: the launcher does, or nobody */
    bool ended, aborted;
};

struct log_job {
    struct import *import;
    struct import_input *input;    /* the file in hand */
    char *path;                    /* the first file */
    uint64_t files, modified_ns;   /* modified_ns: when the last of them was written */
    uint64_t found;                /* lines of the file in hand that said something */
    struct log_process *processes; /* table by host and pid */
    struct log_comm *comms;        /* table by process and pointer */
    struct log_watched *watched;   /* what PyTorch's watchdog said, by rank and process group */
    struct log_unnamed *unnamed;
    struct log_held *held;
    uint32_t unnamed_count, unnamed_capacity;
    size_t held_count, held_capacity;
    int widest;                       /* the largest nranks seen */
    int world;                        /* the world size, where a framework prints it; 0 not known */
    int file_rank;                    /* of the file in hand, by its name; -1 */
    bool is_numbered;                 /* its lines are: the number is no rank */
    struct log_process *file_process; /* the first that wrote the file in hand */
    int64_t longest_ms; /* the longest time that an operation ran before it timed out */
    int64_t desync_seq; /* of the desync report's heading */
    struct log_messages *messages;
    struct log_tracebacks *tracebacks;
    struct log_elastic *elastic;
    struct log_stacks *stacks;
    struct log_ras *ras;
    struct log_stalls *stalls;
    struct log_wrapped *wrapped; /* a line that a terminal broke into several */
    uint64_t torch_ns;           /* the latest time of PyTorch's lines; 0 none */
    uint64_t last_ns;            /* the latest time in the log; 0 none */
    uint64_t cut, strangers,
        held_over; /* lines without their end; calls on communicators never made; held too many */
    uint64_t
        repeated; /* lines that stand for several: Ray leaves out what it takes for repetitions */
};

/* A job's log may be several files: one for each rank, or node. */
int log_job_begin_file(struct log_job *job, struct import *import, struct import_input *input);
/* Reports what was refused of the file. */
void log_job_end_file(struct log_job *job);
/* Imports what waited for the end of all files and frees everything but the job itself. */
int log_job_end(struct log_job *job);
/* What messages about the whole log begin with. */
const char *log_job_name(const struct log_job *job);

/* The process that wrote the line; NULL when memory is short. */
struct log_process *log_job_process(struct log_job *job, const struct log_line *line);
/* A line of somebody else's: the time that it begins with says that the log was still written then.
 */
void log_job_time(struct log_job *job, const char *text, size_t bytes);
int log_job_version(struct log_job *job, struct log_process *process, int version);
int log_job_warning(struct log_job *job, struct log_process *process, const struct log_line *line);
int log_job_event(struct log_job *job, struct log_process *process, const struct log_line *line,
                  const struct log_event *event);

/* log_watched.c: lines of PyTorch's watchdog. */
int log_job_watchdog(struct log_job *job, const char *text, size_t bytes,
                     const struct watchdog_line *line);
/* What another rank reports about line->rank. */
int log_job_reported(struct log_job *job, const struct watchdog_line *line);
int log_watched_end(struct log_job *job);

/* log_unnamed.c: calls that wait for the name of their communicator. */
int log_unnamed_add(struct log_job *job, const struct log_unnamed *unnamed, uint32_t *index);
int log_unnamed_hold(struct log_job *job, uint32_t unnamed, const struct import_call *call);
int log_unnamed_end(struct log_job *job);

/* The sink's number of a process. */
int log_process_index(const struct log_process *process);
/* The process that people know by this rank; NULL if there is none, or several. */
struct log_process *log_job_process_of_rank(struct log_job *job, int rank);

#endif
