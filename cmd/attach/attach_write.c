/* attach_write.c: prints the ranks of a running job, as JSON lines and in words. */
#include "cmd/attach/attach_write.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "cmd/json_values.h"
#include "lib/base/rankset.h"

enum { RANKS_BYTES = 512 };

static json_t *json_of_live_thread(const struct live_process *process,
                                   const struct live_thread *thread)
{
    const char state[2] = {thread->state};
    return json_pack("{s:I, s:b, s:o, s:s, s:i, s:b, s:b, s:I, s:o}", "id", (json_int_t)thread->id,
                     "main", thread->id == (uint32_t)process->pid, "name",
                     json_of_text(thread->name), "state", state, "syscall", (int)thread->syscall,
                     "moves", thread->moves, "works", thread->works, "lock_holder",
                     (json_int_t)thread->holder, "frames",
                     json_of_frames(thread->frame, thread->frames));
}

static json_t *json_of_live_threads(const struct live_process *process)
{
    json_t *threads = json_array();
    for (int i = 0; i < process->threads; i++)
        json_array_append_new(threads, json_of_live_thread(process, &process->thread[i]));
    return threads;
}

static json_t *json_of_live_rank(const struct live_job *job, const struct live_rank *rank,
                                 const char *host)
{
    return json_pack("{s:s, s:s, s:o, s:i, s:i, s:i, s:i, s:s, s:o, s:I, s:i, s:b, s:o}", "schema",
                     "ddpcheck.position/1", "host", host, "job", json_of_text(rank->identity.job),
                     "pid", rank->process.pid, "rank", rank->rank, "local_rank",
                     rank->identity.local_rank, "world_size", rank->identity.world_size, "launcher",
                     rank->identity.launcher, "program", json_of_text(rank->process.command),
                     "time_ns", (json_int_t)job->time_ns, "lasts_s", job->looks - 1, "gone",
                     rank->is_gone, "threads", json_of_live_threads(&rank->process));
}

int attach_write(const struct live_job *job, FILE *out, struct error *err)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    for (int i = 0; i < job->ranks; i++)
        if (json_print_line(json_of_live_rank(job, &job->rank[i], host), out))
            return error_set(err, "cannot write what was seen: %s", strerror(errno));
    return fflush(out) ? error_set(err, "cannot write what was seen: %s", strerror(errno)) : 0;
}

static void print_ranks(const struct live_job *job)
{
    struct rankset here = {0}, gone = {0};
    char text[RANKS_BYTES];
    int failed = 0;
    for (int i = 0; i < job->ranks; i++)
        failed |= rankset_add(job->rank[i].is_gone ? &gone : &here, job->rank[i].rank);
    if (!failed)
        fprintf(stderr, "ddpcheck: looked at %s", rankset_words(&here, text, sizeof text));
    if (job->rank[0].identity.world_size > rankset_count(&here) && !failed)
        fprintf(stderr, " of %d", job->rank[0].identity.world_size);
    if (rankset_count(&gone) && !failed)
        fprintf(stderr, "; there is no process of %s", rankset_words(&gone, text, sizeof text));
    fputc('\n', stderr);
    rankset_free(&here);
    rankset_free(&gone);
}

void attach_print_seen(const struct live_job *job)
{
    if (job->ranks)
        print_ranks(job);
    if (job->ranks && live_job_moves(job))
        fputs("ddpcheck: some of them moved while they were watched: the job gets on\n", stderr);
    else if (job->ranks && job->looks > 1)
        fprintf(stderr,
                "ddpcheck: none of their main threads moved in %d s; --looks 60 watches for a "
                "minute\n",
                job->looks - 1);
    if (job->is_numbered)
        fputs(
            "ddpcheck: no variable says their ranks: they are numbered in the order in which they "
            "were started\n",
            stderr);
    if (job->unreadable)
        fprintf(stderr, "ddpcheck: %d process%s could not be read: %s\n", job->unreadable,
                job->unreadable == 1 ? "" : "es", job->why.text);
    if (job->others)
        fprintf(stderr,
                "ddpcheck: %d process%s of other jobs left out; name one of its processes to see "
                "another job: ddpcheck attach PID\n",
                job->others, job->others == 1 ? " was" : "es were");
}
