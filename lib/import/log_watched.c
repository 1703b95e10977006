/* log_watched.c: what PyTorch's watchdog says of a job that hung: who is at which collective of
 * which process group.
 *
 * The line that names the collective does not name the process group, the lines that name the group
 * come later, with the same number. So all is kept, by rank and number, until the log ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "lib/import/log_job.h"

enum { WATCHED_MAX = 1 << 14, RANKS_MAX = 1 << 20 };

static const uint64_t millisecond_ns = 1000000;

struct watched_key {
    int rank;       /* of the process, by its prefix; else as the line says */
    int64_t seq;    /* -1: a line without one */
    char group[64]; /* "" until a line names it */
};

struct log_watched {
    struct watched_key key;
    struct watchdog_line line;
    UT_hash_handle hh;
};

static struct log_watched *find_watched(struct log_job *job, int rank, int64_t seq,
                                        const char *group)
{
    struct watched_key key;
    struct log_watched *watched;
    memset(&key, 0, sizeof key);
    key.rank = rank;
    key.seq = seq;
    snprintf(key.group, sizeof key.group, "%s", group);
    HASH_FIND(hh, job->watched, &key, sizeof key, watched);
    return watched;
}

static int add_watched(struct log_job *job, int rank, const struct watchdog_line *line)
{
    if (HASH_COUNT(job->watched) >= WATCHED_MAX)
        return 0;
    struct log_watched *watched = calloc(1, sizeof *watched);
    if (!watched)
        return -1;
    watched->key.rank = rank;
    watched->key.seq = line->seq;
    snprintf(watched->key.group, sizeof watched->key.group, "%s", line->group);
    watched->line = *line;
    HASH_ADD(hh, job->watched, key, sizeof watched->key, watched);
    return 0;
}

/* What one line knows and the other does not. */
static void merge_watched(struct watchdog_line *into, const struct watchdog_line *from)
{
    if (!*into->op && *from->op) {
        memcpy(into->op, from->op, sizeof into->op);
        into->numel_in = from->numel_in;
        into->numel_out = from->numel_out;
        into->timeout_ms = from->timeout_ms;
        into->ran_ms = from->ran_ms;
        into->time_ns = from->time_ns; /* when it was said that it ran for so long */
    }
    if (from->has_last) {
        into->has_last = true;
        into->last_enqueued = from->last_enqueued;
        into->last_completed = from->last_completed;
    }
}

int log_job_watchdog(struct log_job *job, const char *text, size_t bytes,
                     const struct watchdog_line *line)
{
    int prefix = log_prefix_rank(text, bytes), rank = prefix >= 0 ? prefix : line->rank;
    if (rank >= RANKS_MAX || line->rank >= RANKS_MAX)
        return 0;
    struct log_watched *same = find_watched(job, rank, line->seq, line->group), *other = NULL;
    if (same) {
        merge_watched(&same->line, line);
        return 0;
    }
    if (line->seq >= 0 && *line->group)
        other = find_watched(job, rank, line->seq, ""); /* the line that named the collective */
    for (struct log_watched *at = job->watched; at && line->seq >= 0 && !*line->group && !other;
         at = at->hh.next)
        if (at->key.rank == rank && at->key.seq == line->seq)
            other = at; /* or it comes after the one that named the group */
    if (!other)
        return add_watched(job, rank, line);
    merge_watched(&other->line, line);
    if (*other->key.group)
        return 0;
    struct watchdog_line whole = other->line;
    memcpy(whole.group, line->group, sizeof whole.group);
    whole.rank = line->rank;
    HASH_DEL(job->watched, other);
    free(other);
    return add_watched(job, rank, &whole);
}

/* --- the end
 * ---------------------------------------------------------------------------------------------- */

static int find_rank_of_job(struct log_job *job, int rank)
{
    const struct log_process *known = log_job_process_of_rank(job, rank);
    if (known)
        return log_process_index(known);
    struct import_process process = import_process_new();
    process.rank = rank;
    process.key = "watchdog";
    process.lacks = LACKS_DATATYPE | LACKS_REDOP | LACKS_ROOT | LACKS_ADDRESSES | LACKS_STREAM |
                    LACKS_GROUP | LACKS_TIMING | LACKS_P2P | LACKS_SETUP | LACKS_START;
    return import_process(job->import, &process);
}

/* "all ranks" of the default group, as far as anybody speaks of them. */
static int count_group_ranks(const struct log_job *job, const char *group)
{
    int ranks = 0;
    for (const struct log_watched *at = job->watched; at; at = at->hh.next)
        if (!strcmp(at->key.group, group) && at->line.rank >= ranks)
            ranks = at->line.rank + 1;
    return ranks > job->widest || !strstr(group, "default_pg") ? ranks : job->widest;
}

/* The number of the timed-out collective, then how far the rank is. The collective began when its
 * time began to run; where lines have no time the file's is taken. */
static int emit_watched(struct log_job *job, const struct log_watched *watched, uint64_t now_ns)
{
    const struct watchdog_line *line = &watched->line;
    char name[96];
    int64_t count;
    int process = find_rank_of_job(job, watched->key.rank);
    struct import_member member = import_member_new();
    snprintf(name, sizeof name, "process group %s", *line->group ? line->group : "of PyTorch");
    member.comm = name;
    member.rank = line->rank;
    member.nranks = count_group_ranks(job, watched->key.group);
    uint64_t ran_ns = line->ran_ms > 0 ? (uint64_t)line->ran_ms * millisecond_ns : 0;
    uint64_t said_ns = line->time_ns ? line->time_ns : now_ns;
    uint64_t begun_ns = said_ns > ran_ns ? said_ns - ran_ns : said_ns;
    member.time_ns = begun_ns;
    int index = process < 0 ? -1 : import_member(job->import, process, &member);
    if (index < 0)
        return -1;
    uint16_t api = watchdog_api(line, &count);
    uint64_t done = line->has_last ? line->last_completed > 0 ? (uint64_t)line->last_completed : 0
                                   : IMPORT_UNKNOWN;
    if (api && line->seq > 0) {
        struct import_call call = import_call_new(index, api);
        call.number = (uint64_t)line->seq - 1;
        call.count = count >= 0 ? (uint64_t)count : IMPORT_UNKNOWN;
        call.time_ns = begun_ns;
        call.state = IMPORT_ISSUED;
        if (import_call(job->import, &call))
            return -1;
    }
    int64_t issued = line->has_last && line->last_enqueued > line->seq ? line->last_enqueued
                                                                       : line->seq;
    if (issued >= 0 && import_reached(job->import, index, (uint64_t)issued, done, begun_ns))
        return -1;
    return import_known_until(job->import, process, now_ns);
}

/* Of several lines of one rank and group the first timeout is where it hangs: what comes later
 * waits behind it. */
static bool is_later(const struct log_job *job, const struct log_watched *watched)
{
    for (const struct log_watched *at = job->watched; at; at = at->hh.next)
        if (at != watched && at->key.rank == watched->key.rank &&
            !strcmp(at->key.group, watched->key.group) && at->key.seq >= 0 &&
            (watched->key.seq < 0 || at->key.seq < watched->key.seq))
            return true;
    return false;
}

int log_watched_end(struct log_job *job)
{
    struct log_watched *watched, *next;
    uint64_t now_ns = job->torch_ns ? job->torch_ns : input_modified_ns(job->input);
    int result = 0;
    for (watched = job->watched; watched && !result; watched = watched->hh.next)
        if (!is_later(job, watched))
            result = emit_watched(job, watched, now_ns);
    HASH_ITER(hh, job->watched, watched, next) {
        HASH_DEL(job->watched, watched);
        free(watched);
    }
    return result;
}
