/* exact.c: brings exact times and the operations that they are of together. */
#include "analyzer/model/exact.h"

#include <stdlib.h>

#include "analyzer/model/array.h"
#include "lib/base/invariant.h"

enum {
    HELD_MOST = 16384, /* operations; of more the oldest keep the times they have */
    EARLY_MOST = 256,  /* times of operations that are not known to be done yet */
    MISSING_PERCENT = 10
};

struct held_operation {
    uint64_t slot, launch; /* launch 0: handed on */
    struct passed passed;
};
struct early_time {
    uint64_t slot, launch, started_ns, done_ns; /* launch 0: none */
};

struct exact_times {
    struct held_operation *held;
    uint32_t first, end, capacity; /* held[first .. end) */
    struct early_time early[EARLY_MOST];
    uint64_t earlies;
    uint64_t timed, missed;
};

static void hand_on_operation(struct process *process, const struct passed *passed)
{
    struct passed *grown = array_room(process->passed.operation, sizeof *grown,
                                      process->passed.count, &process->passed.capacity, 16);
    if (!grown) {
        process->passed.is_short = true;
        return;
    }
    process->passed.operation = grown;
    process->passed.operation[process->passed.count++] = *passed;
}

static void release_operation(struct process *process, struct held_operation *held, bool is_timed)
{
    struct exact_times *exact = process->passed.exact;
    invariant(held >= exact->held && held < exact->held + exact->end,
              "an operation that is released was held");
    if (!held->launch)
        return;
    exact->timed += is_timed;
    exact->missed += !is_timed;
    hand_on_operation(process, &held->passed);
    held->launch = 0;
}

static void drop_released(struct exact_times *exact)
{
    while (exact->first < exact->end && !exact->held[exact->first].launch)
        exact->first++;
    invariant(exact->first <= exact->end && exact->end <= exact->capacity,
              "operations that are held lie between the first and the end");
    if (exact->first == exact->end)
        exact->first = exact->end = 0;
}

/* Room for one more, at the front if it was given up. */
static int make_room_to_hold(struct process *process)
{
    struct exact_times *exact = process->passed.exact;
    if (exact->end - exact->first >= HELD_MOST) {
        release_operation(process, &exact->held[exact->first], false);
        drop_released(exact);
    }
    if (exact->end == exact->capacity && exact->first > exact->capacity / 2) {
        for (uint32_t i = exact->first; i < exact->end; i++)
            exact->held[i - exact->first] = exact->held[i];
        exact->end -= exact->first;
        exact->first = 0;
    }
    struct held_operation *grown =
        array_room(exact->held, sizeof *grown, exact->end, &exact->capacity, 64);
    if (!grown)
        return -1;
    exact->held = grown;
    return 0;
}

static bool take_early(struct exact_times *exact, uint64_t slot, uint64_t launch,
                       struct passed *passed)
{
    uint64_t earlies = exact->earlies < EARLY_MOST ? exact->earlies : EARLY_MOST;
    for (uint64_t i = 0; i < earlies; i++) {
        const struct early_time *early = &exact->early[i];
        if (early->slot != slot || early->launch != launch)
            continue; /* calls of one launch have one time: it stays */
        passed->started_ns = early->started_ns;
        passed->done_ns = early->done_ns;
        return true;
    }
    return false;
}

void exact_pass(struct process *process, uint64_t slot, uint64_t launch,
                const struct passed *passed)
{
    struct exact_times *exact = process->passed.exact;
    struct passed now = *passed;
    bool is_early = exact && take_early(exact, slot, launch, &now);
    if (is_early)
        exact->timed++;
    if (!exact || is_early) {
        hand_on_operation(process, &now);
        return;
    }
    if (make_room_to_hold(process)) {
        process->passed.is_short = true;
        return;
    }
    exact->held[exact->end++] = (struct held_operation){slot, launch, now};
}

/* Those of the launch get its time; earlier ones of its slot will get none. */
static bool release_upto(struct process *process, const struct early_time *time)
{
    struct exact_times *exact = process->passed.exact;
    bool is_found = false;
    for (uint32_t i = exact->first; i < exact->end; i++) {
        struct held_operation *held = &exact->held[i];
        if (!held->launch || held->slot != time->slot)
            continue;
        if (held->launch > time->launch)
            break;
        bool is_timed = held->launch == time->launch;
        if (is_timed) {
            held->passed.started_ns = time->started_ns;
            held->passed.done_ns = time->done_ns;
        }
        is_found |= is_timed;
        release_operation(process, held, is_timed);
    }
    drop_released(exact);
    return is_found;
}

int exact_feed(struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    if (!process->passed.exact &&
        !(process->passed.exact = calloc(1, sizeof *process->passed.exact)))
        return ENGINE_FAILED;
    if (!record->timed.launch)
        return ENGINE_OK; /* from now on there are such times */
    if (record->timed.begin_ns > record->timed.end_ns)
        return ENGINE_SKIPPED;
    struct exact_times *exact = process->passed.exact;
    const struct early_time time = {record->timed.slot, record->timed.launch,
                                    record->timed.begin_ns + process->offset_ns,
                                    record->timed.end_ns + process->offset_ns};
    if (!release_upto(process, &time))
        exact->early[exact->earlies++ % EARLY_MOST] = time;
    return ENGINE_OK;
}

void exact_end(struct process *process)
{
    struct exact_times *exact = process->passed.exact;
    for (uint32_t i = exact ? exact->first : 0; exact && i < exact->end; i++)
        release_operation(process, &exact->held[i], false);
    if (exact)
        drop_released(exact);
}

bool exact_is_complete(const struct process *process)
{
    const struct exact_times *exact = process->passed.exact;
    return exact && exact->timed &&
           100 * exact->missed <= MISSING_PERCENT * (exact->timed + exact->missed);
}

void exact_free(struct process *process)
{
    if (process->passed.exact)
        free(process->passed.exact->held);
    free(process->passed.exact);
    free(process->passed.operation);
}
