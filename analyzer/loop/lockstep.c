/* lockstep.c: gathers when and where in its loop each member reached an operation. */
#include "analyzer/loop/lockstep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/model/process.h"
#include "analyzer/match/window.h"
#include "lib/base/invariant.h"

enum { MEETINGS_START = 32 };

struct lockstep {
    uint32_t capacity;       /* power of two */
    struct meeting *meeting; /* ring by number */
    struct period period;
};

void lockstep_free(struct lockstep *lockstep)
{
    if (!lockstep)
        return;
    free(lockstep->meeting);
    free(lockstep);
}

/* Room for all numbers that some member has still to pass. */
static int reach(struct comm *comm, uint64_t number)
{
    struct lockstep *lockstep = comm->slot.lockstep;
    uint64_t base = window_base(comm), lag = number >= base ? number - base : 0;
    uint32_t capacity = lockstep->capacity ? lockstep->capacity : MEETINGS_START;
    while (capacity < MEETINGS_MAX && lag >= capacity)
        capacity *= 2;
    if (capacity == lockstep->capacity)
        return 0;
    struct meeting *grown = calloc(capacity, sizeof *grown);
    if (!grown)
        return -1;
    for (uint32_t i = 0; i < lockstep->capacity; i++)
        if (lockstep->meeting[i].arrivals)
            grown[lockstep->meeting[i].number & (capacity - 1)] = lockstep->meeting[i];
    free(lockstep->meeting);
    lockstep->meeting = grown;
    lockstep->capacity = capacity;
    return 0;
}

static void count_lap(struct member *member, const struct loop_place *loop)
{
    struct lap *lap = member->laps.lap;
    if (loop->iteration != lap[0].iteration) {
        lap[2] = lap[1];
        lap[1] = lap[0];
        lap[0] = (struct lap){
            .owner = loop->owner, .iteration = loop->iteration, .number = loop->number};
        member->laps.count++;
    }
    lap[0].operations++;
}

struct meeting *lockstep_arrive(const struct operation *operation, struct arrival *arrival)
{
    struct member *member = operation->member;
    struct comm *comm = member->comm;
    uint64_t number = operation->record.op.number;
    errno = 0;
    if (operation->loop.iteration)
        count_lap(member, &operation->loop);
    *arrival = (struct arrival){
        .member = member,
        .loop = operation->loop,
        .site = operation->site,
        .signature = operation->signature,
        .laps = member->laps.count,
        .now = member->laps.lap[0],
        .before = member->laps.lap[1],
        .earlier = member->laps.lap[2],
    };
    if ((!comm->slot.lockstep && !(comm->slot.lockstep = calloc(1, sizeof *comm->slot.lockstep))) ||
        reach(comm, number)) {
        errno = ENOMEM;
        return NULL;
    }
    struct lockstep *lockstep = comm->slot.lockstep;
    struct meeting *meeting = &lockstep->meeting[number & (lockstep->capacity - 1)];
    if (meeting->arrivals && meeting->number > number)
        return NULL;
    if (!meeting->arrivals || meeting->number != number)
        *meeting = (struct meeting){.number = number, .first = *arrival};
    if (!meeting->arrivals)
        period_feed(&lockstep->period, number, signature_hash(&operation->signature));
    invariant(meeting->number == number, "members meet in an operation of one number");
    meeting->arrivals++;
    uint64_t time_ns = operation->site.time_ns;
    if (time_ns >= meeting->last_ns[0]) {
        meeting->last_ns[1] = meeting->last_ns[0];
        meeting->last_ns[0] = time_ns;
        meeting->last = member;
    } else if (time_ns > meeting->last_ns[1]) {
        meeting->last_ns[1] = time_ns;
    }
    invariant(meeting->last_ns[1] <= meeting->last_ns[0],
              "who came last came no earlier than the one before");
    return meeting;
}

const struct meeting *lockstep_find(const struct comm *comm, uint64_t number)
{
    const struct lockstep *lockstep = comm->slot.lockstep;
    const struct meeting *meeting = lockstep && lockstep->capacity
                                        ? &lockstep->meeting[number & (lockstep->capacity - 1)]
                                        : NULL;
    return meeting && meeting->arrivals && meeting->number == number ? meeting : NULL;
}

const struct period *lockstep_period(const struct comm *comm)
{
    return &comm->slot.lockstep->period;
}

void lockstep_end_lap(struct member *member, uint32_t micro_steps)
{
    struct lockstep *lockstep = member->comm->slot.lockstep;
    const struct lap *lap = &member->laps.lap[0];
    for (uint64_t number = member->next, left = lap->operations;
         lockstep && number-- > 0 && left-- > 0;) {
        struct meeting *meeting = &lockstep->meeting[number & (lockstep->capacity - 1)];
        if (meeting->number == number && meeting->arrivals && meeting->first.member == member &&
            meeting->first.loop.iteration == lap->iteration)
            meeting->first.micro_steps = micro_steps;
    }
}

enum sameness arrivals_iteration(const struct arrival *a, const struct arrival *b)
{
    if (!a->loop.iteration || !b->loop.iteration || a->loop.numbered != b->loop.numbered)
        return NOT_KNOWN;
    bool same = a->loop.numbered ? a->loop.number == b->loop.number : a->laps == b->laps;
    return same ? SAME : DIFFERENT;
}

char *arrival_iteration_text(const struct arrival *arrival, char *text, size_t bytes)
{
    const char *name = process_string(arrival->member->process, arrival->loop.text);
    if (*name && arrival->loop.numbered)
        snprintf(text, bytes, "%s", name);
    else
        snprintf(text, bytes, "its iteration %" PRIu64 " here", arrival->laps);
    return text;
}
