/* log_watched.c: keeps what PyTorch's watchdog says of a job that hung, and joins it when all files
 * are read: who is at which collective of which process group.
 *
 * The line that names the collective does not name the process group; lines that name the group
 * come later, with the same number, or not at all. */
#include "lib/import/log_watched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WATCHED_MAX = 1 << 14, RANKS_MAX = 1 << 20 };

static struct log_watched *find_watched(struct log_job *job, const struct watched_key *key)
{
    struct log_watched *watched;
    HASH_FIND(hh, job->watched, key, sizeof *key, watched);
    return watched;
}

static int add_watched(struct log_job *job, const struct watched_key *key,
                       const struct watchdog_line *line)
{
    if (HASH_COUNT(job->watched) >= WATCHED_MAX)
        return 0;
    struct log_watched *watched = calloc(1, sizeof *watched);
    if (!watched)
        return -1;
    watched->key = *key;
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
    if (from->has_last && (!into->has_last || from->last_enqueued > into->last_enqueued)) {
        into->has_last = true;
        into->last_enqueued = from->last_enqueued;
        into->last_completed = from->last_completed;
    }
}

static struct watched_key watched_key_of(const char *text, size_t bytes,
                                         const struct watchdog_line *line, const char *group)
{
    struct watched_key key;
    memset(&key, 0, sizeof key);
    key.speaker = log_speaker_of(text, bytes);
    key.rank = line->rank;
    key.seq = line->seq;
    snprintf(key.group, sizeof key.group, "%s", group);
    return key;
}

int log_job_watchdog(struct log_job *job, const char *text, size_t bytes,
                     const struct watchdog_line *line)
{
    struct watched_key key = watched_key_of(text, bytes, line, line->group), other_key = key;
    struct log_watched *same, *other = NULL;
    if (key.speaker.rank >= RANKS_MAX || line->rank >= RANKS_MAX)
        return 0;
    same = find_watched(job, &key);
    if (line->ran_ms > job->longest_ms)
        job->longest_ms = line->ran_ms;
    if (same) {
        merge_watched(&same->line, line);
        return 0;
    }
    memset(other_key.group, 0, sizeof other_key.group);
    if (line->seq >= 0 && *line->group)
        other = find_watched(job, &other_key); /* the line that named the collective */
    for (struct log_watched *at = job->watched; at && line->seq >= 0 && !*line->group && !other;
         at = at->hh.next)
        if (at->key.speaker.rank == key.speaker.rank &&
            at->key.speaker.source == key.speaker.source && at->key.rank == key.rank &&
            at->key.seq == line->seq)
            other = at; /* or it comes after the one that named the group */
    if (!other)
        return add_watched(job, &key, line);
    merge_watched(&other->line, line);
    if (*other->key.group)
        return 0;
    struct watchdog_line whole = other->line;
    memcpy(whole.group, line->group, sizeof whole.group);
    HASH_DEL(job->watched, other);
    free(other);
    return add_watched(job, &key, &whole);
}

int log_job_reported(struct log_job *job, const struct watchdog_line *line)
{
    struct watched_key key = watched_key_of("", 0, line, line->group);
    struct log_watched *same = NULL;
    if (line->rank >= RANKS_MAX)
        return 0;
    key.speaker.source = UINT32_MAX - (uint32_t)line->source; /* no rank's own words */
    same = find_watched(job, &key);
    if (!same)
        return add_watched(job, &key, line);
    merge_watched(&same->line, line);
    return 0;
}

/* --- the end --- */

/* The number that a line without one is about: what the rank has not come to. */
static int64_t seq_of(const struct log_watched *watched)
{
    return watched->key.seq >= 0 || !watched->line.has_last ? watched->key.seq
                                                            : watched->line.last_enqueued + 1;
}

static bool is_same_work(const struct log_watched *a, const struct log_watched *b)
{
    return seq_of(a) == seq_of(b) &&
           (!*a->line.op || !*b->line.op || !strcmp(a->line.op, b->line.op));
}

/* The only named process group in which others are at this work; "" if there is none, or several.
 */
static const char *find_group_of_work(const struct log_job *job, const struct log_watched *work)
{
    const char *group = "";
    for (const struct log_watched *at = job->watched; at; at = at->hh.next) {
        if (!*at->key.group || !is_same_work(at, work))
            continue;
        if (*group && strcmp(group, at->key.group) != 0)
            return "";
        group = at->key.group;
    }
    return group;
}

/* Where only one process group is named in the whole log, and it is at this number, another
 * operation at that number is a mismatch rather than another group. */
static const char *find_only_group(const struct log_job *job, const struct log_watched *work)
{
    const char *group = "";
    bool at_number = false;
    for (const struct log_watched *at = job->watched; at; at = at->hh.next) {
        if (!*at->key.group)
            continue;
        if (*group && strcmp(group, at->key.group) != 0)
            return "";
        group = at->key.group;
        at_number |= seq_of(at) == seq_of(work);
    }
    return at_number ? group : "";
}

/* Lines whose group nobody named are about one group if all are about the same number; others may
 * be about several, which must not be compared. */
static bool unnamed_are_one(const struct log_job *job)
{
    int64_t seq = -1;
    for (const struct log_watched *at = job->watched; at; at = at->hh.next) {
        if (*at->line.group || at->key.seq < 0)
            continue;
        if (seq >= 0 && seq != at->key.seq)
            return false;
        seq = at->key.seq;
    }
    return true;
}

static void name_groups(struct log_job *job)
{
    for (struct log_watched *at = job->watched; at; at = at->hh.next)
        if (!*at->key.group) {
            const char *group = find_group_of_work(job, at);
            snprintf(at->line.group, sizeof at->line.group, "%s",
                     *group ? group : find_only_group(job, at));
        }
    bool one = unnamed_are_one(job);
    for (struct log_watched *at = job->watched; at; at = at->hh.next)
        if (!*at->line.group && !one)
            snprintf(at->line.group, sizeof at->line.group, "?%lld", (long long)seq_of(at));
}

static int compare_watched(const void *left, const void *right)
{
    const struct log_watched *a = *(struct log_watched *const *)left,
                             *b = *(struct log_watched *const *)right;
    int order = strcmp(a->line.group, b->line.group);
    if (!order)
        order = (a->line.rank > b->line.rank) - (a->line.rank < b->line.rank);
    if (!order)
        order = (a->key.speaker.rank > b->key.speaker.rank) -
                (a->key.speaker.rank < b->key.speaker.rank);
    if (!order)
        order = (a->key.speaker.source > b->key.speaker.source) -
                (a->key.speaker.source < b->key.speaker.source);
    uint64_t first = (uint64_t)a->key.seq, second = (uint64_t)b->key.seq; /* -1 comes last */
    return order ? order : (first > second) - (first < second);
}

/* The same process wrote both, or one is a report about it. */
static bool is_one_rank(const struct log_watched *a, const struct log_watched *b)
{
    return (a->key.speaker.rank == b->key.speaker.rank &&
            a->key.speaker.source == b->key.speaker.source) ||
           a->line.source != FROM_WATCHDOG || b->line.source != FROM_WATCHDOG;
}

static void merge_ranks(struct watchdog_line *into, const struct watchdog_line *from)
{
    if (into->seq < 0)
        into->seq = from->seq;
    if (into->seq == from->seq || from->has_last)
        merge_watched(into, from);
}

/* Of several lines of one rank and group the first timeout is where it hangs: what comes later
 * waits behind it. Returns how many are left. */
static uint32_t keep_first(struct log_watched **all, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct log_watched *last = kept ? all[kept - 1] : NULL;
        if (last && !strcmp(last->line.group, all[i]->line.group) &&
            last->line.rank == all[i]->line.rank && is_one_rank(last, all[i]))
            merge_ranks(&last->line, &all[i]->line);
        else
            all[kept++] = all[i];
    }
    return kept;
}

static int import_groups(struct log_job *job, struct log_watched **all)
{
    uint32_t count = 0;
    for (struct log_watched *at = job->watched; at; at = at->hh.next)
        all[count++] = at;
    qsort(all, count, sizeof(*all), compare_watched);
    count = keep_first(all, count);
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && !strcmp(all[begin]->line.group, all[end]->line.group);)
            end++;
        if (log_group_import(job, all + begin, end - begin))
            return -1;
    }
    return 0;
}

int log_watched_end(struct log_job *job)
{
    struct log_watched *watched, *next;
    struct log_watched **all = calloc(HASH_COUNT(job->watched) + 1, sizeof(*all));
    name_groups(job);
    int result = all ? import_groups(job, all) : -1;
    free(all);
    HASH_ITER(hh, job->watched, watched, next) {
        HASH_DEL(job->watched, watched);
        free(watched);
    }
    return result;
}
