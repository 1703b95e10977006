/* replay.c: see replay.h. */
#include "analyzer/speed/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX, BUFFERED_PART = 10 };
static const double SHORTER = 0.8; /* by a fifth: else they may have ended together */

/* What a run needs. */
struct replay_room {
    double *at;        /* by rank: its own time of day */
    uint32_t *step;    /* by rank: the next */
    uint32_t *next;    /* by rank: the next one that waits for the same, or is ready */
    double *arrived;   /* by step */
    double *latest;    /* by meeting: arrival */
    uint32_t *came;    /* by meeting: how many have arrived */
    uint32_t *waiting; /* by meeting: the first rank that waits for it */
};

/* A step at which a rank arrives, by what it arrives at. */
struct coming {
    const struct speed_step *at;
    uint32_t step;
};

static int compare_operations(const struct speed_step *left, const struct speed_step *right)
{
    if (left->comm != right->comm)
        return left->comm < right->comm ? -1 : 1;
    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    if (left->to != right->to)
        return left->to < right->to ? -1 : 1;
    return (left->number > right->number) - (left->number < right->number);
}

static int compare_coming(const void *a, const void *b)
{
    const struct coming *left = a, *right = b;
    int order = compare_operations(left->at, right->at);
    return order ? order : (left->step > right->step) - (left->step < right->step);
}

static void free_replay_room(struct replay_room *room)
{
    if (!room)
        return;
    free(room->at);
    free(room->step);
    free(room->next);
    free(room->arrived);
    free(room->latest);
    free(room->came);
    free(room->waiting);
    free(room);
}

void replay_free(struct replay *replay)
{
    if (!replay)
        return;
    free_replay_room(replay->room);
    free(replay->of);
    free(replay->first);
    free(replay->meeting);
    free(replay->arrival);
    free(replay->queued);
    free(replay->members);
    free(replay->rank);
    free(replay->coming);
    free(replay->begins);
    free(replay->start);
    free(replay->comm);
    free(replay->work);
    free(replay->delay);
    free(replay->transfer);
    free(replay);
}

static bool has_send_room(struct replay *replay)
{
    size_t steps = replay->steps + 1, ranks = replay->ranks + 1;
    struct replay_room *room = replay->room = calloc(1, sizeof *room);
    replay->meeting = malloc(steps * sizeof *replay->meeting);
    replay->arrival = malloc(steps * sizeof *replay->arrival);
    replay->queued = malloc(steps * sizeof *replay->queued);
    replay->members = calloc(steps, sizeof *replay->members);
    replay->rank = malloc(steps * sizeof *replay->rank);
    replay->coming = malloc(steps * sizeof *replay->coming);
    replay->begins = calloc(steps + 1, sizeof *replay->begins);
    replay->start = calloc(ranks, sizeof *replay->start);
    replay->comm = calloc(steps, sizeof *replay->comm);
    replay->work = calloc(steps, sizeof *replay->work);
    replay->delay = calloc(steps, sizeof *replay->delay);
    replay->transfer = calloc(steps, sizeof *replay->transfer);
    if (!room)
        return false;
    room->at = malloc(ranks * sizeof *room->at);
    room->step = malloc(ranks * sizeof *room->step);
    room->next = malloc(ranks * sizeof *room->next);
    room->arrived = malloc(steps * sizeof *room->arrived);
    room->latest = malloc(steps * sizeof *room->latest);
    room->came = malloc(steps * sizeof *room->came);
    room->waiting = malloc(steps * sizeof *room->waiting);
    return replay->meeting && replay->arrival && replay->queued && replay->members &&
           replay->rank && replay->coming && replay->begins && replay->start && replay->comm &&
           replay->work && replay->delay && replay->transfer && room->at && room->step &&
           room->next && room->arrived && room->latest && room->came && room->waiting;
}

static const struct speed_step *step_of(const struct replay *replay, uint32_t rank, uint32_t step)
{
    return &replay->of[rank][step - replay->first[rank]];
}

/* Finds which arrivals meet. 0 or -1 (ENOMEM). */
static int find_meetings(struct replay *replay)
{
    struct coming *coming = malloc((replay->steps + 1) * sizeof *coming);
    uint32_t count = 0;
    for (uint32_t r = 0; coming && r < replay->ranks; r++)
        for (uint32_t s = replay->first[r]; s < replay->first[r + 1]; s++) {
            const struct speed_step *step = step_of(replay, r, s);
            replay->meeting[s] = replay->arrival[s] = replay->queued[s] = NONE;
            replay->work[s] = step->work;
            replay->delay[s] = step->idle;
            replay->rank[s] = r;
            if (step->arrives)
                coming[count++] = (struct coming){step, s};
        }
    if (coming && count)
        qsort(coming, count, sizeof *coming, compare_coming);
    for (uint32_t i = 0; coming && i < count; i++) {
        if (!i || compare_operations(coming[i].at, coming[i - 1].at)) {
            replay->begins[replay->meetings] = i;
            replay->transfer[replay->meetings++] = coming[i].at->transfer;
        }
        replay->coming[i] = coming[i].step;
        uint32_t meeting = replay->meetings - 1;
        replay->comm[meeting] = coming[i].at->comm;
        replay->transfer[meeting] = fmin(replay->transfer[meeting], coming[i].at->transfer);
        replay->members[meeting]++;
        replay->meeting[coming[i].step] = meeting;
        replay->arrival[coming[i].step] = coming[i].step;
    }
    replay->begins[replay->meetings] = count;
    free(coming);
    return coming ? 0 : -1;
}

/* Where a rank arrived at what it awaits, and what its operations are queued behind. */
static void link_steps(struct replay *replay, uint32_t rank)
{
    for (uint32_t s = replay->first[rank]; s < replay->first[rank + 1]; s++) {
        const struct speed_step *step = step_of(replay, rank, s);
        bool is_open = step->comm && (!step->arrives || step->is_queued);
        for (uint32_t before = s; is_open && before-- > replay->first[rank];) {
            const struct speed_step *other = step_of(replay, rank, before);
            if (!other->arrives || other->comm != step->comm)
                continue;
            if (!step->arrives && compare_operations(other, step))
                continue;
            if (step->arrives) {
                replay->queued[s] = replay->meeting[before];
            } else {
                replay->meeting[s] = replay->meeting[before];
                replay->arrival[s] = before;
            }
            is_open = false;
        }
    }
}

static uint32_t sender_of(const struct replay *replay, uint32_t meeting)
{
    uint32_t first = replay->coming[replay->begins[meeting]];
    bool is_other = step_of(replay, replay->rank[first], first)->receives &&
                    replay->members[meeting] > 1;
    return is_other ? replay->coming[replay->begins[meeting] + 1] : first;
}

/* When the operation ends for the rank; NAN: not all members have come. */
static double end_of(const struct replay *replay, uint32_t rank, uint32_t step,
                     const double *transfer)
{
    const struct replay_room *room = replay->room;
    uint32_t meeting = replay->meeting[step], sender = sender_of(replay, meeting);
    const struct speed_step *sends = step_of(replay, replay->rank[sender], sender);
    bool is_buffered = replay->buffers_sends && sends->from >= 0;
    /* A change of its transfer changes all of what the send takes. */
    double lasted = sends->transfer > 0
                        ? sends->lasted * transfer[meeting] / replay->transfer[meeting]
                        : sends->lasted;
    if (is_buffered && replay->rank[sender] == rank)
        return room->arrived[sender] + lasted;
    if (room->came[meeting] < replay->members[meeting])
        return NAN;
    if (!is_buffered)
        return room->latest[meeting] + transfer[meeting];
    return fmax(room->arrived[replay->arrival[step]] + transfer[meeting],
                room->arrived[sender] + lasted);
}

static void wait_for_step(struct replay_room *room, uint32_t meeting, uint32_t rank)
{
    room->next[rank] = room->waiting[meeting];
    room->waiting[meeting] = rank;
}

/* Those that waited for the meeting are ready. */
static void wake_step(struct replay_room *room, uint32_t meeting, uint32_t *ready)
{
    uint32_t rank = room->waiting[meeting];
    room->waiting[meeting] = NONE;
    while (rank != NONE) {
        uint32_t next = room->next[rank];
        room->next[rank] = *ready;
        *ready = rank;
        rank = next;
    }
}

/* Returns false if it is queued behind what has not ended. */
static bool arrive(const struct replay *replay, uint32_t rank, uint32_t step,
                   const double *transfer, uint32_t *ready)
{
    struct replay_room *room = replay->room;
    uint32_t meeting = replay->meeting[step], behind = replay->queued[step];
    double time = room->at[rank];
    if (behind != NONE && room->came[behind] < replay->members[behind]) {
        wait_for_step(room, behind, rank);
        return false;
    }
    if (behind != NONE)
        time = fmax(time, room->latest[behind] + transfer[behind]);
    room->arrived[step] = time;
    room->latest[meeting] = fmax(room->latest[meeting], time);
    if (++room->came[meeting] == replay->members[meeting])
        wake_step(room, meeting, ready);
    return true;
}

/* A source may record a receive when its data is there: then what the rank waited for it looks
 * idle, and what of the idle time is none of that comes behind it. */
static bool may_hide_wait(const struct speed_step *step)
{
    return step->receives && step->arrives && step->awaits;
}

static double find_delay(const struct replay *replay, uint32_t rank, uint32_t step, double end)
{
    double waits = fmax(end - replay->room->at[rank], 0);
    double took = replay->delay[step] + step_of(replay, rank, step)->exposed;
    return fmin(replay->delay[step], fmax(took - waits, 0));
}

/* Goes on until the rank has to wait for what has not come. */
static void go_on_with_rank(const struct replay *replay, uint32_t rank, const double *work,
                            const double *delay, const double *transfer, uint32_t *ready)
{
    struct replay_room *room = replay->room;
    for (; room->step[rank] < replay->first[rank + 1]; room->step[rank]++) {
        uint32_t s = room->step[rank];
        const struct speed_step *step = step_of(replay, rank, s);
        bool is_hidden = may_hide_wait(step);
        if (isnan(room->arrived[s])) {
            room->at[rank] += work[s] + (is_hidden ? 0 : delay[s]);
            room->arrived[s] = INFINITY; /* its own time is over */
        }
        if (replay->meeting[s] == NONE)
            continue;
        if (step->arrives && isinf(room->arrived[s]) && !arrive(replay, rank, s, transfer, ready))
            return;
        double end = step->awaits ? end_of(replay, rank, s, transfer) : 0;
        if (isnan(end)) {
            wait_for_step(room, replay->meeting[s], rank);
            return;
        }
        if (is_hidden && replay->finds_delays)
            replay->delay[s] = find_delay(replay, rank, s, end);
        room->at[rank] = fmax(room->at[rank], end) + (is_hidden ? delay[s] : 0);
    }
}

double replay_run(const struct replay *replay, const double *work, const double *delay,
                  const double *transfer)
{
    struct replay_room *room = replay->room;
    uint32_t ready = NONE;
    double length = 0;
    for (uint32_t s = 0; s < replay->steps; s++)
        room->arrived[s] = NAN;
    for (uint32_t m = 0; m < replay->meetings; m++) {
        room->latest[m] = 0;
        room->came[m] = 0;
        room->waiting[m] = NONE;
    }
    for (uint32_t r = 0; r < replay->ranks; r++) {
        room->at[r] = replay->start[r];
        room->step[r] = replay->first[r];
        room->next[r] = ready;
        ready = r;
    }
    while (ready != NONE) {
        uint32_t rank = ready;
        ready = room->next[rank];
        go_on_with_rank(replay, rank, work, delay, transfer, &ready);
    }
    for (uint32_t r = 0; r < replay->ranks; r++) {
        if (room->step[r] < replay->first[r + 1])
            return 0;
        length = fmax(length, room->at[r]);
    }
    for (uint32_t m = 0; m < replay->meetings; m++)
        length = fmax(length, room->latest[m] + transfer[m]);
    return length;
}

/* When a rank's iteration began is known from what ended on it and another together: a collective;
 * or a message, which does not end on the receiver before it does on the sender. */
struct starts {
    /* By rank; NAN: not known. The latest and the earliest that messages allow. */
    double *start, *low, *high;
    bool has_new;
};

static double begin_of(const struct replay *replay, const struct starts *starts, uint32_t from,
                       uint32_t to)
{
    uint32_t known = replay->rank[from], rank = replay->rank[to];
    return starts->start[known] + step_of(replay, known, from)->ended -
           step_of(replay, rank, to)->ended;
}

/* Of a meeting's members from one whose start is known. */
static void align_meeting(const struct replay *replay, uint32_t meeting, struct starts *starts)
{
    uint32_t first = replay->begins[meeting], end = replay->begins[meeting + 1], from = NONE;
    for (uint32_t i = first; i < end && from == NONE; i++)
        if (!isnan(starts->start[replay->rank[replay->coming[i]]]))
            from = replay->coming[i];
    for (uint32_t i = first; i < end && from != NONE; i++) {
        uint32_t to = replay->coming[i], rank = replay->rank[to];
        const struct speed_step *step = step_of(replay, rank, to);
        if (!isnan(starts->start[rank]))
            continue;
        double begin = begin_of(replay, starts, from, to);
        if (step->from < 0)
            starts->start[rank] = begin;
        else if (step->receives)
            starts->low[rank] = fmax(starts->low[rank], begin); /* NAN is neither */
        else
            starts->high[rank] = fmin(starts->high[rank], begin);
        starts->has_new |= step->from < 0;
    }
}

/* Those that messages show; else one of the ranks that no other is known to meet. */
static bool align_others(const struct replay *replay, struct starts *starts)
{
    uint32_t unknown = NONE;
    bool has_any = false;
    for (uint32_t r = 0; r < replay->ranks; r++) {
        if (!isnan(starts->start[r]))
            continue;
        unknown = r;
        starts->start[r] = isnan(starts->low[r]) ? starts->high[r] : starts->low[r];
        has_any |= !isnan(starts->start[r]);
    }
    if (!has_any && unknown != NONE)
        starts->start[unknown] = 0;
    return unknown != NONE;
}

/* Of a send that lasts longer than its receive: either it waited for that, and both end together;
 * or the data was on its way. Where it was there before, the receive began after the send's end. */
static void find_buffering(struct replay *replay)
{
    uint32_t buffered = 0, shorter = 0;
    for (uint32_t m = 0; m < replay->meetings; m++) {
        uint32_t sender = sender_of(replay, m), first = replay->coming[replay->begins[m]];
        const struct speed_step *sends = step_of(replay, replay->rank[sender], sender);
        if (sends->from < 0 || replay->members[m] != 2)
            continue;
        uint32_t receiver = first == sender ? replay->coming[replay->begins[m] + 1] : first;
        const struct speed_step *receives = step_of(replay, replay->rank[receiver], receiver);
        double later = replay->start[replay->rank[receiver]] + receives->ended -
                       replay->start[replay->rank[sender]] - sends->ended;
        bool is_short = receives->lasted < SHORTER * sends->lasted;
        buffered += is_short && later > receives->lasted;
        shorter += is_short;
    }
    replay->buffers_sends = BUFFERED_PART * buffered > shorter;
}

/* 0 or -1 (ENOMEM). */
static int find_starts(struct replay *replay)
{
    double least = INFINITY, *known = malloc((2 * replay->ranks + 1) * sizeof *known);
    struct starts starts = {replay->start, known, known + replay->ranks, false};
    if (!known)
        return -1;
    for (uint32_t r = 0; r < replay->ranks; r++)
        starts.start[r] = starts.low[r] = starts.high[r] = NAN;
    do {
        starts.has_new = false;
        for (uint32_t m = 0; m < replay->meetings; m++)
            align_meeting(replay, m, &starts);
    } while (starts.has_new || align_others(replay, &starts));
    for (uint32_t r = 0; r < replay->ranks; r++)
        least = fmin(least, replay->start[r]);
    for (uint32_t r = 0; r < replay->ranks; r++)
        replay->start[r] -= least;
    find_buffering(replay);
    free(known);
    return 0;
}

struct replay *replay_new(const struct speed *speed, uint64_t iteration)
{
    struct replay *replay = calloc(1, sizeof *replay);
    if (!replay)
        return NULL;
    replay->ranks = speed->count;
    replay->of = calloc(speed->count + 1, sizeof *replay->of);
    replay->first = calloc(speed->count + 2, sizeof *replay->first);
    bool is_whole = replay->of && replay->first;
    for (uint32_t r = 0; is_whole && r < speed->count; r++) {
        uint32_t count = 0;
        const struct speed_iteration *known = speed_iteration_find(speed->rank[r], iteration);
        replay->of[r] = speed_steps(speed->rank[r], iteration, &count);
        replay->first[r + 1] = replay->first[r] + count;
        is_whole &= replay->of[r] && known;
    }
    replay->steps = is_whole ? replay->first[speed->count] : 0;
    if (!is_whole || !has_send_room(replay) || find_meetings(replay) || find_starts(replay)) {
        replay_free(replay);
        return NULL;
    }
    for (uint32_t r = 0; r < replay->ranks; r++) {
        double length = speed_iteration_find(speed->rank[r], iteration)->length;
        replay->recorded = fmax(replay->recorded, replay->start[r] + length);
        link_steps(replay, r);
    }
    replay->finds_delays = true;
    replay_run(replay, replay->work, replay->delay, replay->transfer);
    replay->finds_delays = false;
    replay->length = replay_run(replay, replay->work, replay->delay, replay->transfer);
    return replay;
}
