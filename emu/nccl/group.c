/* group.c: collects the calls of a group, issues them when it ends, and creates its communicators.
 */
#include "emu/nccl/group.h"

#include <signal.h>
#include <stdlib.h>

#include "emu/core.h"
#include "emu/nccl/errors.h"
#include "emu/nccl/launch.h"
#include "emu/nccl/one_sided.h"
#include "emu/nccl/profiler.h"

/* The tasks of one communicator. */
struct job_batch {
    struct job_batch *next;
    struct ncclComm *comm; /* a reference */
    size_t count, room;
    struct task *tasks;
};

struct call_group {
    int depth;
    ncclResult_t error;        /* the first of its calls that failed */
    struct job_batch *batches; /* in order of first use */
    struct group_job *jobs;
};

static _Thread_local struct call_group group;

void group_enter(void)
{
    group.depth++;
}

int group_depth(void)
{
    return group.depth;
}

static struct job_batch *batch_of(struct ncclComm *comm)
{
    struct job_batch **link = &group.batches;

    while (*link && (*link)->comm != comm)
        link = &(*link)->next;
    if (!*link && (*link = calloc(1, sizeof(**link)))) {
        communicator_hold(comm);
        (*link)->comm = comm;
    }
    return *link;
}

ncclResult_t group_add_task(struct ncclComm *comm, const struct task *task)
{
    struct job_batch *batch = batch_of(comm);

    if (batch && batch->count == batch->room) {
        size_t room = batch->room ? batch->room * 2 : 4;
        struct task *tasks = realloc(batch->tasks, room * sizeof(*tasks));

        if (!tasks)
            return fail(ncclSystemError, "Out of memory for a group of %zu calls", room);
        batch->tasks = tasks;
        batch->room = room;
    }
    if (!batch)
        return fail(ncclSystemError, "Out of memory for a group");
    batch->tasks[batch->count++] = *task;
    return ncclSuccess;
}

void group_add_job(struct group_job *job)
{
    struct group_job **link = &group.jobs;

    while (*link)
        link = &(*link)->next;
    job->next = NULL;
    *link = job;
}

/* A message to itself is only possible within one launch. */
static ncclResult_t check_self(const struct job_batch *batch)
{
    size_t sends = 0, recvs = 0;

    for (size_t i = 0; i < batch->count; i++) {
        if (batch->tasks[i].root != batch->comm->rank)
            continue;
        sends += batch->tasks[i].kind == TASK_SEND;
        recvs += batch->tasks[i].kind == TASK_RECV;
    }
    if (sends > recvs)
        return fail(ncclInvalidUsage, "Trying to send to self without a matching recv");
    if (sends < recvs)
        return fail(ncclInvalidUsage, "Trying to recv to self without a matching send");
    return ncclSuccess;
}

static ncclResult_t launch_batches(struct job_batch *batches)
{
    ncclResult_t result = ncclSuccess;

    for (struct job_batch *batch = batches; batch && !result; batch = batch->next)
        result = check_self(batch);
    for (struct job_batch *batch = batches; batch && !result; batch = batch->next) {
        size_t others = one_sided_sort(batch->tasks, batch->count);

        result = one_sided_push(batch->comm, batch->tasks + others, batch->count - others);
        batch->count = others;
        if (!result && others)
            result = launch_push(batch->comm, batch->tasks, others);
    }
    return result;
}

static void free_batches(struct job_batch *batches)
{
    while (batches) {
        struct job_batch *next = batches->next;

        communicator_put(batches->comm);
        for (size_t i = 0; i < batches->count; i++)
            free(batches->tasks[i].one_sided);
        free(batches->tasks);
        free(batches);
        batches = next;
    }
}

static void *run_joined(void *arg)
{
    struct group_job *job = arg;

    job->result = job->run(job);
    return NULL;
}

static void *run_detached(void *arg)
{
    struct group_job *job = arg;

    pthread_detach(pthread_self());
    job->run(job);
    job->free(job);
    return NULL;
}

/* Signals are the program's business, not that of our threads. */
static int start_job_thread(struct group_job *job, void *(*body)(void *), pthread_t *thread)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, NULL, body, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* All at once: the ranks that one process has wait for each other. */
static ncclResult_t run_blocking(struct group_job *jobs)
{
    ncclResult_t result = ncclSuccess;

    for (struct group_job *job = jobs->next; job; job = job->next)
        if (start_job_thread(job, run_joined, &job->thread)) {
            job->thread = pthread_self();
            job->result = fail(ncclSystemError, "Can't start a thread for a communicator");
        }
    run_joined(jobs);
    for (struct group_job *job = jobs, *next; job; job = next) {
        next = job->next;
        if (job != jobs && !pthread_equal(job->thread, pthread_self()))
            pthread_join(job->thread, NULL);
        if (!result)
            result = job->result;
        job->free(job);
    }
    return result;
}

/* The job may be gone as soon as its thread runs. Its outcome is the communicator's state. */
static ncclResult_t run_in_background(struct group_job *jobs)
{
    for (struct group_job *job = jobs, *next; job; job = next) {
        pthread_t thread;

        next = job->next;
        if (start_job_thread(job, run_detached, &thread)) {
            job->run(job);
            job->free(job);
        }
    }
    return ncclInProgress;
}

/* Jobs that never ran, the last first: they give back numbers they took. */
static void free_jobs(struct group_job *jobs)
{
    if (!jobs)
        return;
    free_jobs(jobs->next);
    jobs->free(jobs);
}

static ncclResult_t run_jobs(struct group_job *jobs)
{
    if (!jobs)
        return ncclSuccess;
    for (const struct group_job *job = jobs; job; job = job->next)
        if (job->blocking != jobs->blocking) {
            free_jobs(jobs);
            return fail(ncclInvalidArgument,
                        "Blocking and nonblocking communicators are not allowed in the same group");
        }
    return jobs->blocking ? run_blocking(jobs) : run_in_background(jobs);
}

ncclResult_t group_leave(ncclResult_t result)
{
    struct call_group ended;

    if (result && result != ncclInProgress && !group.error)
        group.error = result;
    if (--group.depth)
        return result;
    ended = group;
    group = (struct call_group){0};
    result = ended.error;
    if (result) {
        free_jobs(ended.jobs);
    } else {
        result = run_jobs(ended.jobs);
        if (!result || result == ncclInProgress) {
            ncclResult_t launched = launch_batches(ended.batches);

            result = launched ? launched : result;
        }
    }
    free_batches(ended.batches);
    profiler_group_over();
    return result;
}

/* nccl.h declares these without a prototype. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

PUBLIC(ncclGroupStart);
ncclResult_t ncclGroupStart(void)
{
    group_enter();
    return ncclSuccess;
}

PUBLIC(ncclGroupEnd);
ncclResult_t ncclGroupEnd(void)
{
    if (!group.depth)
        return fail(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
    if (group.depth == 1)
        profiler_group_ends();
    return group_leave(ncclSuccess);
}

/* There is no hardware whose time could be foretold: the calls are dropped, as they are to be, and
 * the estimate stays "undefined". */
PUBLIC(ncclGroupSimulateEnd);
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
    if (!group.depth)
        return fail(ncclInvalidUsage, "ncclGroupSimulateEnd: not in a group call.");
    if (info && info->magic != 0x74685283)
        return fail(ncclInvalidArgument,
                    "ncclSimInfo_t argument not initialized via NCCL_SIM_INFO_INITIALIZER");
    if (!--group.depth) {
        struct call_group ended = group;

        group = (struct call_group){0};
        free_jobs(ended.jobs);
        free_batches(ended.batches);
        if (ended.error)
            return ended.error;
        emu_unsupported("ncclGroupSimulateEnd", "there is no hardware to estimate the time of");
        if (info)
            info->estimatedTime = NCCL_UNDEF_FLOAT;
    }
    return ncclSuccess;
}

/* --- creation --- */

void creation_begin(struct creation *creation, struct ncclComm *comm, ncclComm_t *slot,
                    bool blocking)
{
    creation->comm = comm;
    creation->slot = slot;
    creation->job.blocking = blocking;
    communicator_hold(comm);
    *slot = comm;
}

ncclResult_t creation_end(struct creation *creation, ncclResult_t result)
{
    struct ncclComm *comm = creation->comm;

    if (!comm)
        return result;
    if (!result)
        profiler_attach(comm);
    if (result && creation->job.blocking) {
        *creation->slot = NULL;
        communicator_retire(comm);
    }
    atomic_store(&comm->state, (int)result);
    return result;
}

void creation_release(struct creation *creation)
{
    struct ncclComm *comm = creation->comm;

    if (!comm)
        return;
    /* The group failed before the job could run. */
    if (atomic_load(&comm->state) == ncclInProgress) {
        creation->job.blocking = true;
        creation_end(creation, ncclInvalidUsage);
    }
    communicator_put(comm);
}
