/* log_unnamed.c: communicators of NCCL before 2.16, which prints a pointer, a rank and a size of
 * each, and nothing that is the same on all ranks.
 *
 * One that has all ranks of the job has the same place among the communicators of that size on
 * every rank. Smaller ones can't be distinguished: two groups of four look alike. To guess would be
 * to invent mismatches. So calls wait for the end of the log, which knows the largest size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/rankset.h"
#include "lib/import/log_processes.h"

enum { HELD_MAX = 1 << 21, NAME_BYTES = 64 };

int log_unnamed_add(struct log_job *job, const struct log_unnamed *unnamed, uint32_t *index)
{
    if (!ARRAY_ADD(job->unnamed, job->unnamed_count))
        return -1;
    *index = job->unnamed_count;
    job->unnamed[job->unnamed_count++] = *unnamed;
    return 0;
}

int log_unnamed_hold(struct log_job *job, uint32_t unnamed, const struct import_call *call)
{
    if (job->held_count == HELD_MAX) {
        job->held_over++;
        return 0;
    }
    if (!ARRAY_ADD(job->held, job->held_count))
        return -1;
    job->held[job->held_count++] = (struct log_held){unnamed, *call};
    return 0;
}

/* --- which of them can be named --- */

/* The rank of each in its communicator, as far as NCCL, the launcher or the file's name says it. */
static void find_ranks(struct log_job *job)
{
    for (uint32_t i = 0; i < job->unnamed_count; i++)
        if (job->unnamed[i].by_hint)
            job->unnamed[i].rank = log_process_hint(job, job->unnamed[i].process);
}

static bool is_world(const struct log_job *job, const struct log_unnamed *unnamed)
{
    return unnamed->nranks == job->widest;
}

/* Another process says that it is the same rank, and is no restarted one: there are several
 * communicators of this size, and none has all ranks. */
static bool is_same_rank_elsewhere(const struct log_unnamed *a, const struct log_unnamed *b)
{
    return a->process != b->process && a->rank == b->rank && a->ordinal == b->ordinal &&
           (a->device != b->device || strcmp(a->process->key.host, b->process->key.host) != 0);
}

/* The largest communicators seen have all ranks of the job: no process has a rank beyond, and no
 * rank is there twice. */
static bool widest_is_world(const struct log_job *job)
{
    for (uint32_t i = 0; i < job->unnamed_count; i++) {
        const struct log_unnamed *unnamed = &job->unnamed[i];
        if (!is_world(job, unnamed) || unnamed->rank < 0)
            continue;
        if (unnamed->rank >= unnamed->nranks)
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (is_world(job, &job->unnamed[k]) &&
                is_same_rank_elsewhere(&job->unnamed[k], unnamed))
                return false;
    }
    return true;
}

/* Nobody says a rank, but there is one process for each of the GPUs 0 to n - 1 of one node: the
 * devices' numbers stand for the ranks, and a note says so. Returns whether that is so. */
static bool devices_are_ranks(const struct log_job *job)
{
    struct rankset devices = {0};
    const char *host = NULL;
    bool fits = job->widest > 1 && job->world <= job->widest;
    int processes = 0;
    for (const struct log_process *at = job->processes; at; at = at->hh.next)
        processes++;
    for (uint32_t i = 0; i < job->unnamed_count && fits; i++) {
        const struct log_unnamed *unnamed = &job->unnamed[i];
        if (!is_world(job, unnamed))
            continue;
        host = host ? host : unnamed->process->key.host;
        fits = unnamed->rank < 0 && unnamed->device >= 0 && unnamed->device < unnamed->nranks &&
               !strcmp(host, unnamed->process->key.host) &&
               (unnamed->ordinal || !rankset_has(&devices, unnamed->device)) &&
               !rankset_add(&devices, unnamed->device);
    }
    fits = fits && processes == job->widest && rankset_count(&devices) == job->widest;
    rankset_free(&devices);
    return fits;
}

static int take_devices_for_ranks(struct log_job *job)
{
    struct import_process process = import_process_new();
    for (uint32_t i = 0; i < job->unnamed_count; i++) {
        struct log_unnamed *unnamed = &job->unnamed[i];
        if (!is_world(job, unnamed))
            continue;
        unnamed->rank = unnamed->device;
        import_process_rank(job->import, log_process_index(unnamed->process), unnamed->rank);
    }
    process.key = "not named";
    process.file = job->path;
    int index = import_process(job->import, &process);
    return index < 0 ? -1
                     : import_said(job->import, index, SAID_NOTE, "ddpcheck",
                                   "the log says of no process which rank it is; there is one for "
                                   "each GPU of one node, so the GPU's number is shown as the rank"
                                   "\nRun with NCCL_DEBUG_SUBSYS=INIT,COLL to have the ranks.",
                                   0);
}

/* --- the end --- */

/* The sink's number of each that can be named, -1 of the others. */
static int import_unnamed_members(struct log_job *job, int *members)
{
    find_ranks(job);
    bool world = widest_is_world(job);
    if (world && devices_are_ranks(job) && take_devices_for_ranks(job))
        return -1;
    for (uint32_t i = 0; i < job->unnamed_count; i++) {
        const struct log_unnamed *unnamed = &job->unnamed[i];
        char name[NAME_BYTES];
        struct import_member member = import_member_new();
        members[i] = -1;
        if (!world || !is_world(job, unnamed) || unnamed->rank < 0)
            continue;
        snprintf(name, sizeof name, "all %d ranks, #%d", unnamed->nranks, unnamed->ordinal);
        member.comm = name;
        member.rank = unnamed->rank;
        member.nranks = unnamed->nranks;
        member.device = unnamed->device;
        members[i] = import_member(job->import, log_process_index(unnamed->process), &member);
        if (members[i] < 0)
            return -1;
    }
    return 0;
}

static int import_unnamed_calls(struct log_job *job, const int *members, uint64_t *dropped)
{
    for (size_t i = 0; i < job->held_count; i++) {
        struct log_held *held = &job->held[i];
        held->call.member = members[held->unnamed];
        if (held->call.member < 0)
            ++*dropped;
        else if (import_call(job->import, &held->call))
            return -1;
    }
    for (uint32_t i = 0; i < job->unnamed_count; i++)
        if (members[i] >= 0 && job->unnamed[i].ended &&
            import_member_end(job->import, members[i], job->unnamed[i].aborted, 0))
            return -1;
    return 0;
}

int log_unnamed_end(struct log_job *job)
{
    uint64_t dropped = 0;
    int *members = calloc(job->unnamed_count + 1, sizeof *members);
    int result = members && !import_unnamed_members(job, members) &&
                         !import_unnamed_calls(job, members, &dropped)
                     ? 0
                     : -1;
    if (dropped)
        import_refuse(job->import,
                      "%s: %llu calls on communicators that can't be identified were skipped: a "
                      "log of NCCL before 2.16, or without the lines of NCCL_DEBUG_SUBSYS=INIT, "
                      "identifies only communicators of all ranks",
                      log_job_name(job), (unsigned long long)dropped);
    if (job->held_over)
        import_refuse(
            job->import,
            "%s: %llu calls past the first %d on communicators without a name were not taken",
            log_job_name(job), (unsigned long long)job->held_over, HELD_MAX);
    free(members);
    free(job->unnamed);
    free(job->held);
    job->unnamed = NULL;
    job->held = NULL;
    return result;
}
