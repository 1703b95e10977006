/* gaps.c: see gaps.h.
 *
 * Calls and their lines are recorded anyway, so no thread is interrupted to see where its time goes
 * by: that would cut short a sleep or a select() of the program. */
#include "analyzer/speed/gaps.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/model/process.h"
#include "lib/trace/names.h"

enum {
    GAPS_KEPT = 32,
    GAP_LEAST_NS = 300000 /* shorter ones are the program's own pace */
};

struct host_gaps {
    struct host_gap gap[GAPS_KEPT];
    uint32_t count;
    uint32_t inside; /* threads in a call */
    struct host_call last;
    uint64_t last_ns;
};

static struct host_gaps *gaps_of_process(struct analyzer *analyzer, const struct process *process)
{
    struct speed *speed = analyzer->slot.speed;
    uint32_t index = (uint32_t)process->index;
    if (index >= speed->gap_room) {
        uint32_t room = index < 8 ? 16 : 2 * index;
        struct host_gaps **grown = realloc(speed->gaps, room * sizeof *grown);
        if (!grown)
            return NULL;
        for (uint32_t i = speed->gap_room; i < room; i++)
            grown[i] = NULL;
        speed->gaps = grown;
        speed->gap_room = room;
    }
    if (!speed->gaps[index])
        speed->gaps[index] = calloc(1, sizeof *speed->gaps[index]);
    return speed->gaps[index];
}

static bool are_same_call(const struct host_call *one, const struct host_call *other)
{
    return one->stack == other->stack && one->api == other->api;
}

/* Which of a gap's sizes that is. */
static int size_of(double seconds)
{
    double times = seconds * 1e9 / GAP_LEAST_NS;
    int size = 0;
    for (; times >= 2 && size < GAP_SIZES - 1; size++)
        times /= 2;
    return size;
}

static void add_to_gap(struct host_gap *gap, double seconds)
{
    struct gap_sum *sum = &gap->size[0][size_of(seconds)];
    sum->seconds += (float)seconds;
    sum->count++;
    gap->seconds += seconds;
}

/* The one that takes least gives way. */
static void count_gap(struct host_gaps *gaps, const struct host_call *to, double seconds)
{
    struct host_gap *least = &gaps->gap[0];
    for (uint32_t i = 0; i < gaps->count; i++) {
        struct host_gap *gap = &gaps->gap[i];
        if (are_same_call(&gap->from, &gaps->last) && are_same_call(&gap->to, to)) {
            add_to_gap(gap, seconds);
            return;
        }
        least = gap->seconds < least->seconds ? gap : least;
    }
    if (gaps->count < GAPS_KEPT)
        least = &gaps->gap[gaps->count++];
    *least = (struct host_gap){.from = gaps->last, .to = *to};
    add_to_gap(least, seconds);
}

/* Threads that only ask whether something is done, such as a watchdog's, do not count. */
static bool is_of_interest(const struct event *event)
{
    const struct thread *thread = event->thread;
    enum api_class class = event->class;
    bool is_work = class == CLASS_COPY || class == CLASS_LAUNCH || class == CLASS_GRAPH;
    return class != CLASS_RANGE && (is_work || thread->uses_nccl) && !thread->process->info.lacks;
}

void speed_host_call(const struct event *event)
{
    struct analyzer *analyzer = event->process->analyzer;
    const struct thread *thread = event->thread;
    const struct record *record = event->record;
    if (!analyzer->slot.speed || !is_of_interest(event))
        return;
    struct host_gaps *gaps = gaps_of_process(analyzer, event->process);
    if (!gaps) {
        analyzer->failed = true;
        return;
    }
    const struct record *call = record->phase == RECORD_LEAVE ? &thread->enter : record;
    const struct host_call here = {call->stack, (call->flags & RECORD_FLAG_ADDRESS) != 0,
                                   call->api};
    if (record->phase == RECORD_LEAVE || thread->in_call) /* its LEAVE may be lost */
        gaps->inside -= gaps->inside > 0;
    else if (!gaps->inside && gaps->last_ns && record->time_ns > gaps->last_ns + GAP_LEAST_NS)
        count_gap(gaps, &here, (double)(record->time_ns - gaps->last_ns) / 1e9);
    gaps->inside += record->phase == RECORD_ENTER && !(record->flags & RECORD_FLAG_OVER);
    gaps->last = here;
    gaps->last_ns = record->time_ns;
}

static struct gap_sum sum_from(const struct host_gap *gap, double least)
{
    struct gap_sum sum = {0};
    for (int part = 0; part < GAP_PARTS; part++)
        for (int size = size_of(least); size < GAP_SIZES; size++) {
            sum.seconds += gap->size[part][size].seconds;
            sum.count += gap->size[part][size].count;
        }
    return sum;
}

/* Those that did not come since the part before are gone. */
static void begin_part(struct host_gaps *gaps)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < gaps->count; i++) {
        struct host_gap gap = gaps->gap[i];
        memcpy(gap.size[1], gap.size[0], sizeof gap.size[1]);
        memset(gap.size[0], 0, sizeof gap.size[0]);
        gap.seconds = sum_from(&gap, 0).seconds;
        if (gap.seconds > 0)
            gaps->gap[kept++] = gap;
    }
    gaps->count = kept;
}

void speed_forget_gaps(struct speed *speed, uint64_t closed)
{
    if (closed < speed->gaps_since + GAP_ITERATIONS)
        return;
    speed->gaps_since = closed;
    for (uint32_t i = 0; i < speed->gap_room; i++)
        if (speed->gaps[i])
            begin_part(speed->gaps[i]);
}

void speed_find_gap(const struct speed *speed, double least, uint64_t times,
                    struct slowdown *slowdown)
{
    const struct speed_rank *rank = slowdown->rank[0];
    uint32_t index = (uint32_t)rank->key.process->index;
    double longest = 0;
    slowdown->gap = NULL;
    if (rank->key.device >= 0 || index >= speed->gap_room || !speed->gaps[index])
        return;
    for (uint32_t i = 0; i < speed->gaps[index]->count; i++) {
        const struct host_gap *gap = &speed->gaps[index]->gap[i];
        struct gap_sum sum = sum_from(gap, least);
        if (sum.count < times || sum.seconds <= longest)
            continue;
        longest = sum.seconds;
        slowdown->gap = gap;
        slowdown->gap_each = sum.seconds / (double)sum.count;
    }
}

void speed_gaps_free(struct speed *speed)
{
    for (uint32_t i = 0; i < speed->gap_room; i++)
        free(speed->gaps[i]);
    free(speed->gaps);
}
