/* run_delays.c: see run_delays.h. */
#include "analyzer/speed/run_delays.h"

#include <math.h>
#include <stdlib.h>

#include "analyzer/model/array.h"
#include "analyzer/model/process.h"

enum { DELAYS_KEPT = 512 }; /* readings; of more, the older ones are merged */

/* All until then. */
struct delay_reading {
    uint64_t until_ns;
    struct run_delay_sum sum;
};

struct run_delays {
    const struct process *process;
    struct delay_reading *reading;
    uint32_t count, capacity;
    uint64_t last_interval_ns;
    UT_hash_handle hh;
};

static struct run_delays *delays_find(const struct speed *speed, const struct process *process)
{
    struct run_delays *delays;
    TABLE_FIND(speed->run_delays, &process, delays);
    return delays;
}

static struct run_delays *delays_get(struct speed *speed, const struct process *process)
{
    struct run_delays *delays = delays_find(speed, process);
    if (delays || !(delays = calloc(1, sizeof *delays)))
        return delays;
    delays->process = process;
    TABLE_ADD(speed->run_delays, process, delays);
    if (TABLE_ADDED(delays))
        return delays;
    free(delays);
    return NULL;
}

static void merge_older(struct run_delays *delays)
{
    uint32_t kept = 0;
    for (uint32_t i = 1; i < delays->count; i += 2)
        delays->reading[kept++] = delays->reading[i];
    delays->count = kept;
}

/* 0 or -1 (ENOMEM). */
static int add_reading(struct run_delays *delays, uint64_t until_ns, struct run_delay_sum sum)
{
    if (delays->count == DELAYS_KEPT)
        merge_older(delays);
    struct delay_reading *grown =
        array_room(delays->reading, sizeof *grown, delays->count, &delays->capacity, 16);
    if (!grown)
        return -1;
    delays->reading = grown;
    delays->reading[delays->count++] = (struct delay_reading){until_ns, sum};
    return 0;
}

/* Between the intervals of two records nothing was worth one. */
int speed_run_delay(struct event *event)
{
    struct analyzer *analyzer = event->process->analyzer;
    const struct process *process = event->process;
    const struct record *record = event->record;
    struct speed *speed = speed_get(analyzer);
    struct run_delays *delays = speed ? delays_get(speed, process) : NULL;
    if (!delays)
        return ENGINE_FAILED;
    uint64_t end_ns = event->site.time_ns, begin_ns = end_ns - record->run_delay.interval_ns;
    const struct delay_reading *last = delays->count ? &delays->reading[delays->count - 1] : NULL;
    struct run_delay_sum sum = last ? last->sum : (struct run_delay_sum){0};
    if (!record->run_delay.interval_ns || record->run_delay.interval_ns > end_ns ||
        (last && end_ns <= last->until_ns))
        return ENGINE_OK; /* noise */
    if (!last || last->until_ns < begin_ns)
        analyzer->failed |= add_reading(delays, begin_ns, sum) != 0;
    uint64_t own_ns = record->run_delay.longest_ns, children_ns = record->run_delay.children_ns;
    sum.waited += (double)own_ns / 1e9;
    sum.with_child += (double)(own_ns > children_ns ? own_ns : children_ns) / 1e9;
    sum.throttled += (double)record->run_delay.throttled_ns / 1e9;
    analyzer->failed |= add_reading(delays, end_ns, sum) != 0;
    delays->last_interval_ns = record->run_delay.interval_ns;
    return ENGINE_OK;
}

static struct run_delay_sum add_times(struct run_delay_sum sum, double times,
                                      struct run_delay_sum more)
{
    return (struct run_delay_sum){sum.waited + times * more.waited,
                                  sum.with_child + times * more.with_child,
                                  sum.throttled + times * more.throttled};
}

/* Behind the last reading it goes on as it was until the next is due. */
static struct run_delay_sum sum_until(const struct run_delays *delays, uint64_t time_ns)
{
    uint32_t next = 0;
    for (uint32_t last = delays->count; next < last;) {
        uint32_t middle = next + (last - next) / 2;
        if (delays->reading[middle].until_ns < time_ns)
            next = middle + 1;
        else
            last = middle;
    }
    if (!next)
        return (struct run_delay_sum){0};
    bool is_behind = next == delays->count;
    const struct delay_reading *to = &delays->reading[is_behind ? next - 1 : next], *from = to - 1;
    if (is_behind && (next < 2 || time_ns > to->until_ns + 2 * delays->last_interval_ns))
        return to->sum;
    double share = (double)(time_ns - from->until_ns) / (double)(to->until_ns - from->until_ns);
    return add_times(from->sum, share, add_times(to->sum, -1, from->sum));
}

struct run_delay_sum speed_run_delays(const struct speed *speed, const struct process *process,
                                      uint64_t begin_ns, uint64_t end_ns)
{
    const struct run_delays *delays = delays_find(speed, process);
    if (!delays || begin_ns >= end_ns)
        return (struct run_delay_sum){0};
    struct run_delay_sum begin = sum_until(delays, begin_ns), end = sum_until(delays, end_ns);
    return add_times(end, -1, begin);
}

void speed_run_delays_free(struct speed *speed)
{
    struct run_delays *delays, *next;
    HASH_ITER(hh, speed->run_delays, delays, next) {
        HASH_DEL(speed->run_delays, delays);
        free(delays->reading);
        free(delays);
    }
}
