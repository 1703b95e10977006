/* log_processes.h: what the files that follow a log's processes and communicators share (log_job.c,
 * log_calls.c). */
#ifndef DDPCHECK_IMPORT_LOG_PROCESSES_H
#define DDPCHECK_IMPORT_LOG_PROCESSES_H

#include <uthash.h>

#include "lib/import/log_job.h"

enum { LOG_THREADS_MAX = 16, LOG_NAME_BYTES = 96 };

struct process_key {
    char host[64];
    int pid;
};

struct log_process {
    struct process_key key;
    int index;                       /* the sink's */
    int hint;                        /* rank by the launcher's prefix, or the file's name; -1 */
    bool hint_is_file, hint_is_name; /* of the file's lines or name; of its name alone */
    bool hint_differs;               /* its lines had several: they are no rank */
    int widest, rank; /* of its largest communicator; rank -2: it holds several ranks of it */
    int version;
    bool has_calls, has_times;
    uint64_t groups; /* ncclGroupStart calls at depth 0 */
    struct {
        int tid, depth;
        uint64_t group;
    } thread[LOG_THREADS_MAX];
    int threads;
    UT_hash_handle hh;
};

/* log_job.c: the rank by the launcher's prefix or the file's name; -1: none, or several. */
int log_process_hint(const struct log_job *job, const struct log_process *process);

struct comm_key {
    const struct log_process *process;
    uint64_t pointer;
};

struct log_comm {
    struct comm_key key;
    int rank, nranks, device;
    int member; /* the sink's; -1: not reported yet, or unnamed */
    uint64_t comm_id;
    char name[LOG_NAME_BYTES]; /* of a split */
    int splits;
    bool is_unnamed, complete, used;
    uint32_t unnamed;
    struct log_event reported; /* the last operation of an INFO line, until its CALL line came */
    UT_hash_handle hh;
};

/* log_job.c: the communicator that the process calls by this pointer now, or NULL. */
struct log_comm *log_comm_find(struct log_job *job, const struct log_process *process,
                               uint64_t pointer);
/* A new one by the event's pointer; NULL when memory is short. */
struct log_comm *log_comm_new(struct log_job *job, struct log_process *process,
                              const struct log_event *event);
void log_comm_forget(struct log_job *job, struct log_comm *comm);
/* It has no name that other ranks know: its calls wait for the end of the log. */
int log_comm_hold_back(struct log_job *job, struct log_process *process, struct log_comm *comm);
/* Makes it known to the sink, unless it has no name. */
int log_comm_import(struct log_job *job, struct log_process *process, struct log_comm *comm,
                    uint64_t time_ns);

/* log_calls.c: ncclGroupStart and ncclGroupEnd; a collective, send or receive. */
void log_calls_group(struct log_process *process, const struct log_line *line, bool starts);
int log_calls_operation(struct log_job *job, struct log_process *process,
                        const struct log_line *line, const struct log_event *event);

#endif
