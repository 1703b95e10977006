/* log_calls.c: the calls that a log has: collectives, messages, and the groups that they are
 * in. */
#include <string.h>

#include "lib/import/log_processes.h"

static int thread_of(struct log_process *process, int tid)
{
    for (int i = 0; i < process->threads; i++)
        if (process->thread[i].tid == tid)
            return i;
    int i = process->threads < LOG_THREADS_MAX ? process->threads++ : LOG_THREADS_MAX - 1;
    process->thread[i].tid = tid;
    process->thread[i].depth = 0;
    return i;
}

void log_calls_group(struct log_process *process, const struct log_line *line, bool starts)
{
    int i = thread_of(process, line->tid);
    if (starts) {
        if (!process->thread[i].depth++)
            process->thread[i].group = ++process->groups;
    } else if (process->thread[i].depth) {
        process->thread[i].depth--;
    }
}

static struct import_call make_log_call(struct log_process *process, const struct log_line *line,
                                        const struct log_event *event, int member)
{
    struct import_call call = import_call_new(member, event->api);
    int i = thread_of(process, line->tid);
    call.count = event->count;
    call.datatype = event->datatype >= 0 && event->datatype < TYPE_COUNT ? (uint8_t)event->datatype
                                                                         : TYPE_NONE;
    call.redop = event->redop >= REDOP_SUM && event->redop <= REDOP_AVG ? (uint8_t)event->redop
                                                                        : REDOP_UNKNOWN;
    if (event->root >= 0)
        call.root = event->root;
    call.sendbuff = event->sendbuff;
    call.recvbuff = event->recvbuff;
    call.stream = event->stream;
    call.thread = (uint32_t)line->tid;
    call.time_ns = line->time_ns;
    if (process->thread[i].depth)
        call.group = process->thread[i].group;
    return call;
}

/* NCCL_DEBUG=TRACE prints each call twice. */
static bool reported_already(struct log_comm *comm, const struct log_line *line,
                             const struct log_event *event)
{
    if (line->level != LOG_CALL) {
        comm->reported = *event;
        return false;
    }
    bool same = comm->reported.api == event->api && comm->reported.sendbuff == event->sendbuff &&
                comm->reported.recvbuff == event->recvbuff &&
                comm->reported.count == event->count && comm->reported.stream == event->stream;
    comm->reported = (struct log_event){0};
    return same;
}

int log_calls_operation(struct log_job *job, struct log_process *process,
                        const struct log_line *line, const struct log_event *event)
{
    struct log_comm *comm = log_comm_find(job, process, event->comm);
    if (!event->api) {
        job->cut++;
        return 0;
    }
    if (comm && event->nranks > 0 && comm->nranks != event->nranks) {
        log_comm_forget(job, comm);
        comm = NULL;
    }
    if (!comm) { /* made before the log begins, or without the lines of subsystem INIT */
        struct log_event init = *event;
        init.comm_id = 0;
        if (init.device < 0)
            init.device = line->device;
        comm = event->nranks > 0 ? log_comm_new(job, process, &init) : NULL;
        if (!comm) {
            job->strangers++;
            return 0;
        }
        if (log_comm_hold_back(job, process, comm))
            return -1;
        if (job->widest < comm->nranks)
            job->widest = comm->nranks;
    }
    comm->used = true;
    if (reported_already(comm, line, event))
        return 0;
    if (log_comm_import(job, process, comm, line->time_ns))
        return -1;
    struct import_call call = make_log_call(process, line, event, comm->member);
    return comm->is_unnamed ? log_unnamed_hold(job, comm->unnamed, &call)
                            : import_call(job->import, &call);
}
