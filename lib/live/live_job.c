/* live_job.c: reads the ranks of a running job, and what moves in them. */
#include "lib/live/live_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/array.h"
#include "lib/base/clock.h"
#include "lib/base/process_file.h"
#include "lib/live/live_find.h"
#include "lib/live/live_motion.h"
#include "lib/trace/symbols.h"

enum { RANKS_MAX = 4096, NS_PER_S = 1000000000 };

/* --- which processes --- */

/* Started by who started one that uses NCCL: a rank that has not come so far. */
static bool is_beside_rank(const struct live_found *list, int count, const struct live_found *found)
{
    for (int i = 0; i < count && found->parent > 1; i++)
        if (list[i].parent == found->parent && list[i].uses_nccl)
            return true;
    return false;
}

static bool is_sought(const struct live_search *search, const struct live_found *list, int count,
                      const struct live_found *found)
{
    for (int i = 0; i < search->count; i++)
        if (live_is_below(list, count, found->pid, search->pids[i]))
            return found->uses_nccl || found->is_unreadable || found->pid == search->pids[i];
    return !search->count && (found->uses_nccl || is_beside_rank(list, count, found));
}

static bool is_of_slurm_job(const struct live_process *process, const char *job)
{
    const char *own = live_variable(process, "SLURM_JOB_ID");
    return !job || (own && !strcmp(own, job));
}

/* It has exited; perhaps nobody has fetched its status. */
static bool has_exited(int pid)
{
    enum { STAT_BYTES = 512 };
    char text[STAT_BYTES], state;
    const char *fields = process_stat_read(pid, text, sizeof text);
    return !fields || sscanf(fields, ") %c", &state) != 1 || state == 'Z' || state == 'X';
}

static void note_unreadable(struct live_job *job, int pid, const struct error *why)
{
    if (!has_exited(pid) && !job->unreadable++)
        job->why = *why;
}

static void read_candidate(struct live_job *job, const struct live_search *search,
                           const struct live_found *found)
{
    struct error why;
    struct live_rank *rank = &job->rank[job->ranks];
    *rank = (struct live_rank){.is_watched = found->is_watched};
    if (live_read(&rank->process, found->pid, NULL, &why)) {
        note_unreadable(job, found->pid, &why);
        return;
    }
    if (!is_of_slurm_job(&rank->process, search->slurm_job)) {
        live_free(&rank->process);
        return;
    }
    live_identify(&rank->process, &rank->identity);
    rank->rank = rank->identity.rank;
    job->uses_nccl |= found->uses_nccl;
    if (rank->rank < 0 && !found->uses_nccl && !search->count) {
        live_free(&rank->process);
        return;
    }
    job->ranks++;
}

static int read_candidates(struct live_job *job, const struct live_search *search)
{
    job->rank = calloc((size_t)job->found_count + 1, sizeof *job->rank);
    for (int i = 0; i < job->found_count && job->rank && job->ranks < RANKS_MAX; i++)
        if (is_sought(search, job->found, job->found_count, &job->found[i]))
            read_candidate(job, search, &job->found[i]);
    return job->rank ? 0 : -1;
}

/* --- which of them are ranks --- */

static void drop_rank(struct live_job *job, int index)
{
    live_free(&job->rank[index].process);
    memmove(&job->rank[index], &job->rank[index + 1],
            (size_t)(job->ranks - index - 1) * sizeof *job->rank);
    job->ranks--;
}

static int find_rank_pid(const struct live_job *job, int pid)
{
    for (int i = 0; i < job->ranks; i++)
        if (job->rank[i].process.pid == pid)
            return i;
    return -1;
}

static bool waits_for_children(const struct live_process *process)
{
    return process->threads &&
           (process->thread[0].syscall == SYS_wait4 || process->thread[0].syscall == SYS_waitid);
}

/* What a rank started, as a data loader's workers, has that rank's variables. Where no variable
 * says a rank, who waits for its children has started ranks. */
static bool is_no_rank(const struct live_job *job, const struct live_rank *rank, bool some_named)
{
    int parent = find_rank_pid(job, rank->process.parent);
    if (some_named)
        return rank->rank < 0 || (parent >= 0 && job->rank[parent].rank == rank->rank);
    if (parent >= 0 && !waits_for_children(&job->rank[parent].process))
        return true;
    for (int i = 0; i < job->ranks; i++)
        if (job->rank[i].process.parent == rank->process.pid && waits_for_children(&rank->process))
            return true;
    return false;
}

static void choose_ranks(struct live_job *job)
{
    bool some_named = false, *drops = calloc((size_t)job->ranks + 1, sizeof *drops);
    for (int i = 0; i < job->ranks; i++)
        some_named |= job->rank[i].rank >= 0;
    for (int i = 0; i < job->ranks && drops; i++)
        drops[i] = is_no_rank(job, &job->rank[i], some_named);
    for (int i = job->ranks - 1; i >= 0 && drops; i--)
        if (drops[i])
            drop_rank(job, i);
    free(drops);
    job->is_numbered = !some_named && job->ranks > 0;
    for (int i = 0; i < job->ranks && job->is_numbered; i++)
        job->rank[i].rank = i;
}

/* The ranks of the job that has the most of them here are left. */
static void choose_job(struct live_job *job)
{
    const char *most = "";
    char chosen[sizeof((struct live_identity *)NULL)->job];
    int count = 0;
    for (int i = 0; i < job->ranks; i++) {
        int same = 0;
        for (int k = 0; k < job->ranks; k++)
            same += !strcmp(job->rank[i].identity.job, job->rank[k].identity.job);
        if (same > count) {
            count = same;
            most = job->rank[i].identity.job;
        }
    }
    snprintf(chosen, sizeof chosen, "%s", most);
    for (int i = job->ranks - 1; i >= 0; i--)
        if (strcmp(job->rank[i].identity.job, chosen) != 0) {
            drop_rank(job, i);
            job->others++;
        }
}

static bool has_rank(const struct live_job *job, int rank)
{
    for (int i = 0; i < job->ranks; i++)
        if (job->rank[i].rank == rank)
            return true;
    return false;
}

/* Another process was started by who started ranks, and uses NCCL: which rank it is was not known
 * yet when it was looked at. */
static bool has_strangers(const struct live_job *job)
{
    struct live_found *list;
    int count = live_find(&list);
    bool found = count < 0;
    for (int i = 0; i < count && !found; i++)
        for (int k = 0; k < job->ranks && list[i].uses_nccl && !found; k++)
            found = list[i].parent > 1 && list[i].parent == job->rank[k].process.parent &&
                    find_rank_pid(job, list[i].pid) < 0;
    free(list);
    return found;
}

/* Which ranks of this host have no process. Their launcher says how many there are here. */
static int add_gone(struct live_job *job)
{
    const struct live_identity known = job->ranks ? job->rank[0].identity
                                                  : (struct live_identity){0};
    int first = known.local_rank >= 0 ? known.rank - known.local_rank : 0;
    bool knows = known.rank >= 0 && known.local_size > 0 && known.local_size <= RANKS_MAX &&
                 (known.local_rank >= 0 || known.local_size == known.world_size) &&
                 job->ranks < known.local_size && !has_strangers(job);
    for (int rank = first; knows && rank < first + known.local_size; rank++) {
        if (has_rank(job, rank))
            continue;
        if (!ARRAY_ADD(job->rank, job->ranks))
            return -1;
        job->rank[job->ranks] =
            (struct live_rank){.identity = known, .rank = rank, .is_gone = true};
        job->rank[job->ranks++].identity.local_rank = rank - first;
    }
    return 0;
}

/* --- looks --- */

/* The last look has all frames; who can't be read again keeps those of the first. */
static void look_again(struct live_job *job, const struct live_search *search)
{
    struct symbols *symbols = search->native ? symbols_new() : NULL;
    for (int i = 0; i < job->ranks; i++) {
        struct live_process now;
        struct error why;
        if (live_read(&now, job->rank[i].process.pid, symbols, &why)) {
            note_unreadable(job, job->rank[i].process.pid, &why);
            if (has_exited(job->rank[i].process.pid)) {
                live_free(&job->rank[i].process);
                job->rank[i].is_gone = true;
            }
            continue;
        }
        live_motion_compare(&job->rank[i].process, &now);
        live_free(&job->rank[i].process);
        job->rank[i].process = now;
    }
    symbols_free(symbols);
}

static void watch_live_job(struct live_job *job, const struct live_search *search)
{
    const struct live_process **process = calloc((size_t)job->ranks + 1, sizeof *process);
    for (int i = 0; i < job->ranks && process; i++)
        process[i] = &job->rank[i].process;
    struct live_motion *motion = process && search->looks > 1
                                     ? live_motion_watch(process, job->ranks, job->found,
                                                         job->found_count,
                                                         (search->looks - 1) * 1000)
                                     : NULL;
    free(process);
    look_again(job, search);
    for (int i = 0; i < job->ranks && motion; i++)
        live_motion_mark(motion, &job->rank[i].process);
    live_motion_free(motion);
    job->looks = search->looks;
    job->time_ns = realtime_now_ns();
}

static int refuse_empty(const struct live_search *search, struct error *err)
{
    if (search->count || search->slurm_job)
        error_set(err, "none of these processes uses NCCL, or they have exited");
    else
        error_set(err, "no process of yours on this host uses NCCL (libnccl is mapped by none, and "
                       "none holds a GPU); name them: ddpcheck attach PID...");
    return -1;
}

/* Those that may be ranks, for all that may be seen of them. */
static void count_unreadable(struct live_job *job)
{
    struct error first;
    for (int i = 0; i < job->found_count; i++) {
        struct live_process process;
        struct error why;
        if (!job->found[i].is_unreadable)
            continue;
        if (live_read(&process, job->found[i].pid, NULL, &why))
            note_unreadable(job, job->found[i].pid, &why);
        else
            live_free(&process);
    }
    first = job->why;
    error_set(&job->why, "no process of yours that may be read uses NCCL; %d may not be: %.300s",
              job->unreadable, first.text);
}

int live_job_find(struct live_job *job, const struct live_search *search, struct error *err)
{
    *job = (struct live_job){0};
    job->found_count = live_find(&job->found);
    if (job->found_count < 0 || read_candidates(job, search)) {
        live_job_free(job);
        return error_set(err, OUT_OF_MEMORY);
    }
    choose_ranks(job);
    choose_job(job);
    if (!job->ranks && !search->count && !search->slurm_job)
        count_unreadable(job);
    if (job->ranks || job->unreadable)
        return 0;
    live_job_free(job);
    return refuse_empty(search, err);
}

int live_job_watch(struct live_job *job, const struct live_search *search, struct error *err)
{
    watch_live_job(job, search);
    return add_gone(job) ? error_set(err, OUT_OF_MEMORY) : 0;
}

bool live_job_moves(const struct live_job *job)
{
    for (int i = 0; i < job->ranks; i++)
        if (job->rank[i].process.threads && job->rank[i].process.thread[0].moves)
            return true;
    return false;
}

uint64_t live_start_ns(const struct live_job *job, int pid)
{
    struct timespec up;
    clock_gettime(CLOCK_BOOTTIME, &up);
    uint64_t boot_ns = realtime_now_ns() - (uint64_t)up.tv_sec * NS_PER_S - (uint64_t)up.tv_nsec;
    for (int i = 0; i < job->found_count; i++)
        if (job->found[i].pid == pid)
            return boot_ns +
                   job->found[i].start_ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
    return 0;
}

void live_job_free(struct live_job *job)
{
    for (int i = 0; i < job->ranks; i++)
        live_free(&job->rank[i].process);
    free(job->rank);
    free(job->found);
    *job = (struct live_job){0};
}
