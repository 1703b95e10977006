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
#include "lib/import/log_reader.h"
#include "lib/import/log_torch.h"

struct log_process;
struct log_comm;
struct log_wrapped;

/* A call on a communicator that has no name yet. */
struct log_held {
    uint32_t unnamed; /* which of log_job.unnamed */
    struct import_call call;
};

/* A communicator whose identity NCCL did not print (before 2.16). */
struct log_unnamed {
    struct log_process *process;
    int rank, nranks, device,
        ordinal;  /* ordinal: of the process's communicators of that size and rank */
    bool by_hint; /* no line of NCCL's says its rank: the launcher does, or nobody */
    bool ended, aborted;
};

enum { RECENT_PROCESSES = 64 }; /* a power of two above the processes of a node */

struct log_job {
    struct import *import;
    struct import_input *input;  /* the file in hand */
    char *path;                  /* the first file */
    uint64_t files, modified_ns; /* modified_ns: when the last of them was written, for the year */
    uint64_t found;              /* lines of the file in hand that said something */
    struct log_process *processes;                /* table by host and pid */
    struct log_process *recent[RECENT_PROCESSES]; /* found last, by pid; NULL: none */
    struct log_comm *comms;                       /* table by process and pointer */
    const struct log_reader *const *readers;      /* by number, set by the owner of the job */
    void *state[LOG_READERS];                     /* of each reader */
    struct log_unnamed *unnamed;
    struct log_held *held;
    uint32_t unnamed_count;
    size_t held_count;
    int widest;                       /* the largest nranks seen */
    int world;                        /* the world size, where a framework prints it; 0 not known */
    struct log_files *seen;           /* what names of files said so far */
    int file_rank;                    /* of the file in hand, by its name or its lines; -1 */
    bool file_rank_is_name;           /* only its name says so: perhaps a local one */
    uint32_t attempt;                 /* of the file in hand: torchelastic's attempt_N */
    bool ranks_are_local;             /* names of files have local ranks, which are not the job's */
    bool is_numbered;                 /* its lines are: the number is no rank */
    struct log_process *file_process; /* the first that wrote the file in hand */
    int64_t longest_ms;          /* the longest time that an operation ran before it timed out */
    struct log_wrapped *wrapped; /* a line that a terminal broke into several */
    uint64_t torch_ns;           /* the latest time of PyTorch's lines; 0 none */
    uint64_t first_ns, last_ns;  /* the earliest and the latest time in the log; 0 none */
    uint64_t dated_ns;           /* the latest with a year in the file in hand; 0 none */
    uint64_t file_ns;            /* the latest so far in the file in hand; 0 none */
    uint64_t cut, strangers,
        held_over; /* lines without their end; calls on communicators never made; held too many */
    uint64_t
        repeated; /* lines that stand for several: Ray leaves out what it takes for repetitions */
};

/* When something was whose log has no times: no day that anybody knows (moment_known). */
#define LOG_UNDATED_NS (10 * LACKS_TIME_BEGINS)

/* What is so far apart is not about one hang, and nothing of it is compared: twice the longest of
 * torch.distributed's default time-outs, 30 min. */
#define LOG_APART_NS (UINT64_C(3600) * 1000000000)

/* Offers a line to the readers. Returns 1 if one took it, 0 if none, -1 when memory is short. */
int log_job_line(struct log_job *job, const char *text, size_t bytes);
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
/* A time with a year, of the file in hand if it has one; 0: there is none. */
uint64_t log_job_dated(const struct log_job *job);
int log_job_version(struct log_job *job, struct log_process *process, int version);
int log_job_warning(struct log_job *job, struct log_process *process, const struct log_line *line);
int log_job_event(struct log_job *job, struct log_process *process, const struct log_line *line,
                  const struct log_event *event);

/* log_watched.c: what another rank reports about line->rank. */
int log_job_reported(struct log_job *job, const struct watchdog_line *line);

/* log_unnamed.c: calls that wait for the name of their communicator. */
int log_unnamed_add(struct log_job *job, const struct log_unnamed *unnamed, uint32_t *index);
int log_unnamed_hold(struct log_job *job, uint32_t unnamed, const struct import_call *call);
int log_unnamed_end(struct log_job *job);

/* The sink's number of a process. */
int log_process_index(const struct log_process *process);
/* The process that people know by this rank; NULL if there is none, or several. */
struct log_process *log_job_process_of_rank(struct log_job *job, int rank);

#endif
