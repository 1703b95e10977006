/* log_watched.c: keeps what PyTorch's watchdog says of a job that hung, and joins it when all files
 * are read: each rank's collective in each process group.
 *
 * The line that names the collective does not name the process group; lines that name the group
 * come later, with the same number, or not at all. */
#include "lib/import/log_watched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_messages.h"

enum { WATCHED_MAX = 1 << 14, RANKS_MAX = 1 << 20 };

/* By what was said; lines without a process group, or without a number, are joined at the end. */
struct log_watchdog {
    struct log_watched *watched;
};

static struct log_watched *find_watched(const struct log_watchdog *all,
                                        const struct watched_key *key)
{
    struct log_watched *watched;
    HASH_FIND(hh, all->watched, key, sizeof *key, watched);
    return watched;
}

static int add_watched(struct log_watchdog *all, const struct watched_key *key,
                       const struct watchdog_line *line)
{
    if (HASH_COUNT(all->watched) >= WATCHED_MAX)
        return 0;
    struct log_watched *watched = calloc(1, sizeof *watched);
    if (!watched)
        return -1;
    watched->key = *key;
    watched->line = *line;
    HASH_ADD(hh, all->watched, key, sizeof watched->key, watched);
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
    if (*into->op && from->ran_ms > into->ran_ms) /* a line that was broken inside of the number */
        into->ran_ms = from->ran_ms;
    bool is_later = from->last_enqueued > into->last_enqueued ||
                    from->last_completed > into->last_completed; /* or its number was cut before */
    if (from->has_last && (!into->has_last || is_later)) {
        into->has_last = true;
        into->last_enqueued = from->last_enqueued;
        into->last_completed = from->last_completed;
    }
    into->is_signal |= from->is_signal;
    into->found_here |= from->found_here;
    if (into->found_by < 0)
        into->found_by = from->found_by;
}

static struct watched_key watched_key_of(const struct log_job *job, const char *text, size_t bytes,
                                         const struct watchdog_line *line)
{
    struct watched_key key;
    memset(&key, 0, sizeof key);
    key.speaker = log_speaker_of(text, bytes);
    key.rank = line->rank;
    key.seq = line->seq;
    snprintf(key.group, sizeof key.group, "%s", line->group);
    key.attempt = job->attempt;
    key.hour = (uint32_t)(line->time_ns / LOG_APART_NS);
    return key;
}

static int keep_watched(struct log_job *job, const char *text, size_t bytes,
                        const struct watchdog_line *line)
{
    struct log_watchdog *all = job->state[LOG_WATCHDOG];
    struct watched_key key = watched_key_of(job, text, bytes, line), other_key = key;
    struct log_watched *same, *other = NULL;
    if (key.speaker.rank >= RANKS_MAX || line->rank >= RANKS_MAX)
        return 0;
    same = find_watched(all, &key);
    if (line->ran_ms > job->longest_ms)
        job->longest_ms = line->ran_ms;
    if (same) {
        merge_watched(&same->line, line);
        return 0;
    }
    memset(other_key.group, 0, sizeof other_key.group);
    if (line->seq >= 0 && *line->group)
        other = find_watched(all, &other_key); /* the line that named the collective */
    for (struct log_watched *at = all->watched; at && line->seq >= 0 && !*line->group && !other;
         at = at->hh.next)
        if (at->key.speaker.rank == key.speaker.rank &&
            at->key.speaker.source == key.speaker.source && at->key.rank == key.rank &&
            at->key.seq == line->seq && at->key.attempt == key.attempt && at->key.hour == key.hour)
            other = at; /* or it comes after the one that named the group */
    if (!other)
        return add_watched(all, &key, line);
    merge_watched(&other->line, line);
    if (*other->key.group)
        return 0;
    struct watchdog_line whole = other->line;
    memcpy(whole.group, line->group, sizeof whole.group);
    HASH_DEL(all->watched, other);
    free(other);
    return add_watched(all, &key, &whole);
}

int log_job_reported(struct log_job *job, const struct watchdog_line *line)
{
    struct log_watchdog *all = job->state[LOG_WATCHDOG];
    struct watched_key key = watched_key_of(job, "", 0, line);
    struct log_watched *same = NULL;
    if (line->rank >= RANKS_MAX)
        return 0;
    key.speaker.source = UINT32_MAX - (uint32_t)line->source; /* no rank's own words */
    same = find_watched(all, &key);
    if (!same)
        return add_watched(all, &key, line);
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
    return a->hang == b->hang && seq_of(a) == seq_of(b) &&
           (!*a->line.op || !*b->line.op || !strcmp(a->line.op, b->line.op));
}

/* The only named process group in which others are at this work; "" if there is none, or several.
 */
static const char *find_group_of_work(const struct log_watchdog *all,
                                      const struct log_watched *work)
{
    const char *group = "";
    for (const struct log_watched *at = all->watched; at; at = at->hh.next) {
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
static const char *find_only_group(const struct log_watchdog *all, const struct log_watched *work)
{
    const char *group = "";
    bool at_number = false;
    for (const struct log_watched *at = all->watched; at; at = at->hh.next) {
        if (!*at->key.group || at->hang != work->hang)
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
static bool unnamed_are_one(const struct log_watchdog *all, uint32_t hang)
{
    int64_t seq = -1;
    for (const struct log_watched *at = all->watched; at; at = at->hh.next) {
        bool is_named = *at->line.group && *at->line.group != '?';
        if (is_named || at->key.seq < 0 || at->hang != hang)
            continue;
        if (seq >= 0 && seq != at->key.seq)
            return false;
        seq = at->key.seq;
    }
    return true;
}

static void name_groups(struct log_watchdog *all)
{
    for (struct log_watched *at = all->watched; at; at = at->hh.next)
        if (!*at->key.group) {
            const char *group = find_group_of_work(all, at);
            snprintf(at->line.group, sizeof at->line.group, "%s",
                     *group ? group : find_only_group(all, at));
        }
    for (struct log_watched *at = all->watched; at; at = at->hh.next)
        if (!*at->line.group && !unnamed_are_one(all, at->hang))
            snprintf(at->line.group, sizeof at->line.group, "?%lld", (long long)seq_of(at));
}

static int compare_watched(const void *left, const void *right)
{
    const struct log_watched *a = *(struct log_watched *const *)left,
                             *b = *(struct log_watched *const *)right;
    int order = (a->hang > b->hang) - (a->hang < b->hang);
    if (!order)
        order = strcmp(a->line.group, b->line.group);
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

static bool shares_group(const struct log_watched *a, const struct log_watched *b)
{
    return a->hang == b->hang && !strcmp(a->line.group, b->line.group);
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
    if (into->seq == from->seq || from->has_last || from->is_signal)
        merge_watched(into, from);
}

/* Of several lines of one rank and group the first timeout is where it hangs: what comes later
 * waits behind it. Returns how many are left. */
static uint32_t keep_first(struct log_watched **all, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct log_watched *last = kept ? all[kept - 1] : NULL;
        if (last && shares_group(last, all[i]) && last->line.rank == all[i]->line.rank &&
            is_one_rank(last, all[i]))
            merge_ranks(&last->line, &all[i]->line);
        else
            all[kept++] = all[i];
    }
    return kept;
}

static int import_groups(struct log_job *job, struct log_watched **all, uint32_t count)
{
    bool has_timeout = false; /* the operation that timed out is known */
    for (uint32_t i = 0; i < count; i++)
        has_timeout |= all[i]->key.seq >= 0;
    qsort(all, count, sizeof(*all), compare_watched);
    count = keep_first(all, count);
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && shares_group(all[begin], all[end]);)
            end++;
        if (log_group_import(job, all + begin, end - begin, has_timeout))
            return -1;
    }
    return 0;
}

static int compare_times(const void *left, const void *right)
{
    const struct log_watched *a = *(struct log_watched *const *)left,
                             *b = *(struct log_watched *const *)right;
    int order = (a->key.attempt > b->key.attempt) - (a->key.attempt < b->key.attempt);
    uint64_t first = a->line.time_ns, second = b->line.time_ns;
    return order ? order : (first > second) - (first < second);
}

/* Attempts of a restart are several, and what is far apart in time. */
static void number_hangs(struct log_watched **all, uint32_t count)
{
    uint32_t hang = 1;
    qsort(all, count, sizeof(*all), compare_times);
    for (uint32_t i = 0; i < count; i++) {
        const struct log_watched *last = i ? all[i - 1] : all[i];
        bool is_apart = last->line.time_ns &&
                        all[i]->line.time_ns - last->line.time_ns >= LOG_APART_NS;
        hang += last->key.attempt != all[i]->key.attempt || is_apart;
        all[i]->hang = hang;
    }
}

/* --- hosts of other time zones --- */

/* PyTorch prints local times without a zone. Zones differ by quarters of an hour, and by 26 hours
 * at most; the ranks of one hang time out within a minute of each other. */
enum { ZONE_STEP_S = 900, ZONES_MOST_S = 26 * 3600, ZONE_SLACK_S = 60 };

/* How much later `later_ns` of a host's clock is than `first_ns` of another one's, if it is by a
 * zone; 0. */
static uint64_t zone_between(uint64_t first_ns, uint64_t later_ns)
{
    uint64_t apart_s = (later_ns - first_ns + UINT64_C(500000000)) / 1000000000;
    uint64_t zone_s = (apart_s + ZONE_STEP_S / 2) / ZONE_STEP_S * ZONE_STEP_S;
    uint64_t off_s = apart_s > zone_s ? apart_s - zone_s : zone_s - apart_s;
    return apart_s <= ZONES_MOST_S && off_s <= ZONE_SLACK_S ? zone_s * 1000000000 : 0;
}

static int rank_of_watched(const struct log_watched *watched)
{
    return watched->key.speaker.rank >= 0 ? watched->key.speaker.rank : watched->key.rank;
}

/* Those of two hangs were at one work, and no rank is in both: in two runs each rank is there
 * twice. */
static bool are_one_hang(struct log_watched *const *all, uint32_t count, uint32_t first,
                         uint32_t other)
{
    bool has_same_work = false;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; all[i]->hang == first && j < count; j++) {
            const struct log_watched *a = all[i], *b = all[j];
            if (b->hang != other)
                continue;
            if (a->key.attempt != b->key.attempt || rank_of_watched(a) == rank_of_watched(b))
                return false;
            has_same_work |= a->key.seq >= 0 && a->key.seq == b->key.seq &&
                             !strcmp(a->line.op, b->line.op) && !strcmp(a->key.group, b->key.group);
        }
    return has_same_work;
}

static const struct log_watched *first_of_hang(struct log_watched *const *all, uint32_t count,
                                               uint32_t hang)
{
    for (uint32_t i = 0; i < count; i++)
        if (all[i]->hang == hang)
            return all[i];
    return NULL;
}

static int say_zone(struct log_job *job, uint64_t zone_ns)
{
    char what[128];
    snprintf(what, sizeof what,
             "times of some ranks are %.4g h later than those of others at the same work: taken as "
             "another time zone of their host",
             (double)zone_ns / 3600e9);
    return log_messages_add(job, LOG_NOBODY, SAID_NOTE, "ddpcheck", what, "") < 0 ? -1 : 0;
}

/* Makes the second one part of the first, if only the zone of its host tears it off. */
static int join_zone(struct log_job *job, struct log_watched *const *all, uint32_t count,
                     uint32_t first, uint32_t other)
{
    const struct log_watched *begin = first_of_hang(all, count, first),
                             *later = first_of_hang(all, count, other);
    uint64_t zone_ns = begin && later ? zone_between(begin->line.time_ns, later->line.time_ns) : 0;
    if (!zone_ns || !are_one_hang(all, count, first, other))
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (all[i]->hang == other) {
            all[i]->hang = first;
            all[i]->line.time_ns -= zone_ns;
            log_messages_earlier(job, rank_of_watched(all[i]), zone_ns);
        }
    return say_zone(job, zone_ns);
}

/* A hang that is the only one needs no number, and ended when its last line was printed. */
static int join_zones(struct log_job *job, struct log_watched *const *all, uint32_t count)
{
    uint32_t hangs = count ? all[count - 1]->hang : 0;
    uint64_t last_ns = 0;
    for (uint32_t other = 2; other <= hangs; other++)
        for (uint32_t first = 1; first < other; first++)
            if (join_zone(job, all, count, first, other))
                return -1;
    bool is_one = true;
    for (uint32_t i = 0; i < count; i++)
        is_one &= all[i]->hang == 1;
    for (uint32_t i = 0; i < count && is_one; i++) {
        all[i]->hang = 0;
        last_ns = all[i]->line.time_ns > last_ns ? all[i]->line.time_ns : last_ns;
    }
    if (is_one && hangs > 1) {
        job->torch_ns = last_ns;
        log_messages_until(job, last_ns);
    }
    return 0;
}

static int read_watchdog_line(struct log_job *job, const char *text, size_t bytes)
{
    struct watchdog_line line;
    if (!watchdog_parse(text, bytes, &line))
        return 0;
    line.time_ns = torch_line_time(text, log_job_dated(job), job->modified_ns);
    if (!line.time_ns)
        line.time_ns = job->file_ns;
    return keep_watched(job, text, bytes, &line) ? -1 : 1;
}

static int end_watchdog(struct log_job *job)
{
    struct log_watchdog *state = job->state[LOG_WATCHDOG];
    struct log_watched *watched, *next;
    uint32_t count = HASH_COUNT(state->watched), at = 0;
    struct log_watched **all = calloc(count + 1, sizeof(*all));
    for (watched = state->watched; watched && all; watched = watched->hh.next)
        all[at++] = watched;
    if (all)
        number_hangs(all, count);
    int result = all ? join_zones(job, all, count) : -1;
    name_groups(state);
    if (!result)
        result = import_groups(job, all, count);
    free(all);
    HASH_ITER(hh, state->watched, watched, next) {
        HASH_DEL(state->watched, watched);
        free(watched);
    }
    return result;
}

const struct log_reader log_watchdog = {
    sizeof(struct log_watchdog),
    read_watchdog_line,
    end_watchdog,
};
