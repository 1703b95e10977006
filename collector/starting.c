/* starting.c: looks whether processes that have made no NCCL call yet compute or load. */
#include "collector/starting.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/candidates.h"
#include "collector/collector.h"
#include "collector/collector_notify.h"
#include "collector/dormant.h"
#include "collector/producer.h"
#include "lib/base/process_file.h"

static const uint64_t second_ns = 1000000000;
enum {
    LOOKS = 4, /* within the silence that --timeout allows */
    USED_PERCENT =
        5, /* of the time in which it need not wait for a processor: who polls every 10 ms
                       * was measured to use below 2 */
};

struct looked_at {
    int pid;
    uint64_t ticks, delay_ns, fetched_bytes;
};

struct starting_watch {
    uint64_t looked_ns;
    struct candidates candidates;
    struct looked_at before[CANDIDATES_MAX];
    int count;
};

static bool is_rank_recorded(const struct collector *collector, int rank)
{
    for (int i = 0; i < collector->producer_count; i++) {
        const struct producer *producer = collector->producers[i];
        if (producer->reader && ring_reader_process(producer->reader)->rank == rank)
            return true;
    }
    return false;
}

/* It may become a rank. What runs beside ranks has their variables, but their rank is recorded; of
 * processes without a number what has loaded a library of the GPU's, and every Python that was
 * started as a rank was, or before anything was recorded. */
static bool is_rank_to_be(const struct collector *collector, struct candidates *candidates,
                          struct candidate *candidate)
{
    const struct candidate *parent = candidate_with(candidates, candidate->parent);
    bool is_first = !collector->producer_count && !collector->store;
    bool is_sibling = parent && parent->is_launcher;
    enum rank_sign least = is_first || is_sibling || candidate->rank >= 0 ? RUNS_PYTHON
                                                                          : HAS_LIBRARY;
    return !candidate->is_launcher && candidate_sign(candidate) >= least &&
           (candidate->rank < 0 || !is_rank_recorded(collector, candidate->rank));
}

/* It, or who started it, may become a rank: a child compiles. What a recorded process started is
 * part of that. */
static bool is_of_rank_to_be(const struct collector *collector, struct candidates *candidates,
                             struct candidate *candidate)
{
    bool is_one = false;
    for (int depth = 0; candidate && depth < CANDIDATES_MAX; depth++) {
        if (candidate->is_recorded)
            return false;
        is_one = is_one || is_rank_to_be(collector, candidates, candidate);
        candidate = candidate_with(candidates, candidate->parent);
    }
    return is_one;
}

/* On a busy machine who starts gets less of a processor than who polls on a calm one; where memory
 * is short it waits for its libraries to be read once more. */
static bool makes_progress(const struct starting_watch *watch, const struct looked_at *now,
                           uint64_t passed_ns)
{
    uint64_t tick_ns = second_ns / (uint64_t)sysconf(_SC_CLK_TCK);
    struct looked_at before = {now->pid, 0, now->delay_ns, now->fetched_bytes};
    for (int i = 0; i < watch->count; i++)
        if (watch->before[i].pid == now->pid)
            before = watch->before[i];
    uint64_t used_ns = now->ticks > before.ticks ? (now->ticks - before.ticks) * tick_ns : 0;
    uint64_t delay_ns = now->delay_ns > before.delay_ns ? now->delay_ns - before.delay_ns : 0;
    uint64_t had_ns = delay_ns < passed_ns ? passed_ns - delay_ns : 0;
    return used_ns > had_ns / 100 * USED_PERCENT || now->fetched_bytes > before.fetched_bytes;
}

/* Compares with the look before, which this one replaces. */
static bool look_at_start(struct collector *collector, struct starting_watch *watch,
                          uint64_t passed_ns)
{
    struct looked_at now[CANDIDATES_MAX];
    struct candidates *candidates = &watch->candidates;
    bool progresses = false;
    candidates_find(candidates, collector->options.directory);
    bool is_known = dormant_mark_recorded(collector, candidates);
    for (int i = 0; i < candidates->count; i++) {
        struct candidate *candidate = &candidates->item[i];
        now[i] = (struct looked_at){candidate->pid, process_processor_ticks(candidate->pid),
                                    process_run_delay_ns(candidate->pid),
                                    process_fetched_bytes(candidate->pid)};
        if (!progresses && makes_progress(watch, &now[i], passed_ns))
            progresses = is_of_rank_to_be(collector, candidates, candidate);
    }
    watch->count = candidates->count;
    memcpy(watch->before, now, (size_t)watch->count * sizeof *now);
    return is_known && progresses;
}

static bool is_starting(struct collector *collector, uint64_t now_ns)
{
    uint64_t pause_ns = collector->options.timeout_ns / LOOKS;
    if (!pause_ns || collector->options.notify_fd < 0)
        return false;
    if (!collector->hang.starting) {
        if (!(collector->hang.starting = calloc(1, sizeof *collector->hang.starting)))
            return false;
        collector->hang.starting->looked_ns = collector->began_ns;
    }
    struct starting_watch *watch = collector->hang.starting;
    if (pause_ns > second_ns)
        pause_ns = second_ns;
    uint64_t passed_ns = now_ns - watch->looked_ns;
    if (passed_ns < pause_ns || now_ns - collector->hang.last_call_ns < pause_ns)
        return false;
    watch->looked_ns = now_ns;
    return look_at_start(collector, watch, passed_ns);
}

void collector_notify_starting(struct collector *collector, uint64_t now_ns)
{
    if (is_starting(collector, now_ns))
        notify(collector->options.notify_fd, "starting");
}

void starting_watch_free(struct starting_watch *watch)
{
    free(watch);
}
