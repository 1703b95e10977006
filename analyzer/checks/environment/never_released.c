/* never_released.c: DC804: what a process made of NCCL and left when it exited. */
#include <stdlib.h>

#include "analyzer/check.h"
#include "analyzer/match/one_call.h"
#include "analyzer/model/array.h"
#include "analyzer/model/own_members.h"
#include "analyzer/states.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

enum { MADE_MAX = 4096 }; /* by one process and not released; more are the same again */

/* The call that makes, and the one that releases it. */
static const struct released_by {
    uint16_t makes, releases;
} released_by[] = {
    {API_ncclCommInitRank, API_ncclCommDestroy},
    {API_ncclCommInitRankConfig, API_ncclCommDestroy},
    {API_ncclCommInitRankScalable, API_ncclCommDestroy},
    {API_ncclCommInitAll, API_ncclCommDestroy},
    {API_ncclCommSplit, API_ncclCommDestroy},
    {API_ncclCommShrink, API_ncclCommDestroy},
    {API_ncclCommGrow, API_ncclCommDestroy},
    {API_ncclCommRegister, API_ncclCommDeregister},
    {API_ncclCommWindowRegister, API_ncclCommWindowDeregister},
    {API_ncclMemAlloc, API_ncclMemFree},
};
enum { RELEASED_BY = sizeof released_by / sizeof *released_by };

struct made_thing {
    const struct released_by *by;
    uint64_t comm;     /* the one that it is, or belongs to; 0 none */
    uint64_t handle;   /* by which it is released; 0: a communicator */
    uint64_t position; /* struct process's `now` when it was there */
    uint64_t followed; /* the position of the last one from the same place that was destroyed */
    struct site site;
    bool is_left; /* its communicator was destroyed before it was released */
    bool is_reported;
};

/* What a process made and did not release, the oldest first. */
struct made_things {
    struct made_thing *list;
    uint32_t count, capacity;
};

static void made_end(void *state)
{
    free(((struct made_things *)state)->list);
}

static bool is_comm(const struct made_thing *thing)
{
    return thing->by->releases == API_ncclCommDestroy;
}

static void made_add(struct analyzer *analyzer, struct made_things *made, const struct event *event,
                     const struct released_by *by)
{
    const struct thread *thread = event->thread;
    struct made_thing thing = {.by = by,
                               .comm = event->record->leave.comm,
                               .handle = event->record->leave.handle,
                               .position = event->process->now,
                               .site = thread->enter_site};
    if (is_comm(&thing))
        thing.handle = 0;
    else if (!thing.handle || made->count == MADE_MAX)
        return; /* in a group the handle comes later: what can't be followed is not kept */
    if (made->count == MADE_MAX || (is_comm(&thing) && !thing.comm))
        return;
    struct made_thing *grown =
        array_room(made->list, sizeof *grown, made->count, &made->capacity, 8);
    if (!grown) {
        analyzer->failed = true;
        return;
    }
    made->list = grown;
    made->list[made->count++] = thing;
}

static void made_remove(struct made_things *made, uint16_t releases, uint64_t handle)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < made->count; i++)
        if (made->list[i].by->releases != releases || made->list[i].handle != handle)
            made->list[kept++] = made->list[i];
    made->count = kept;
}

static bool is_from_same_place(const struct made_thing *a, const struct made_thing *b)
{
    return a->by == b->by && a->site.stack == b->site.stack;
}

/* What belongs to the communicator is left; one member of it is no more in the list, which is as
 * long as what a process holds, and not as all that it ever made. */
static void made_note_destroy(struct made_things *made, uint64_t comm)
{
    uint32_t at = 0;
    if (!made)
        return;
    while (at < made->count && (made->list[at].comm != comm || !is_comm(&made->list[at])))
        at++;
    for (uint32_t i = 0; i < at && at < made->count; i++)
        if (is_from_same_place(&made->list[i], &made->list[at]))
            made->list[i].followed = made->list[at].position;
    for (uint32_t i = 0; i < made->count; i++)
        made->list[i].is_left |= made->list[i].comm == comm && !is_comm(&made->list[i]);
    for (; at + 1 < made->count; at++)
        made->list[at] = made->list[at + 1];
    made->count -= at < made->count;
}

static uint64_t released_handle(const struct record *entered)
{
    return entered->api == API_ncclMemFree ? entered->memory.pointer : entered->comm.pointer;
}

static void made_on_leave(struct analyzer *analyzer, const struct event *event)
{
    const struct thread *thread = event->thread;
    const struct record *record = event->record;
    if ((record->result != 0 && record->result != RESULT_IN_PROGRESS) || !thread->in_call ||
        thread->enter.api != record->api)
        return;
    if (record->api == API_ncclCommDestroy)
        made_note_destroy(
            state_find(analyzer, &check_never_released, OWNER_PROCESS, event->process->states),
            thread->enter.comm.comm);
    for (int i = 0; i < RELEASED_BY; i++) {
        const struct released_by *by = &released_by[i];
        bool releases = by->releases == record->api && by->releases != API_ncclCommDestroy;
        struct made_things *made = NULL;
        if (by->makes == record->api || releases)
            made =
                state_get(analyzer, &check_never_released, OWNER_PROCESS, &event->process->states);
        if (made && releases)
            made_remove(made, by->releases, released_handle(&thread->enter));
        else if (made)
            made_add(analyzer, made, event, by);
    }
}

static bool member_has_left(const struct member *member)
{
    return member->leaving || member->aborted || member->destroyed;
}

/* The process is no longer in the communicator, so that nothing of it is left. */
static bool has_ended(const struct process *process, uint64_t comm)
{
    const struct member *member = own_member_first(process, comm);
    for (; member; member = member->own_next)
        if (!member_has_left(member))
            return false;
    return true;
}

/* A communicator that was used, but no more when another was made at the same place: it lies about.
 * One that is used to the end ends with the process, which harms nobody. */
static bool is_abandoned(const struct process *process, const struct made_things *made, uint32_t i)
{
    const struct made_thing *thing = &made->list[i];
    const struct member *member = own_member_first(process, thing->comm);
    uint64_t last = member ? member->launches.last.position : 0;
    bool is_followed = false;
    for (uint32_t k = i + 1; k < made->count && !is_followed; k++)
        is_followed = is_from_same_place(thing, &made->list[k]) && made->list[k].position > last;
    return last && (is_followed || thing->followed > last);
}

static bool is_left_over(const struct process *process, const struct made_things *made, uint32_t i)
{
    const struct made_thing *thing = &made->list[i];
    if (thing->is_reported)
        return false;
    if (is_comm(thing))
        return !has_ended(process, thing->comm) && is_abandoned(process, made, i);
    return thing->is_left || !thing->comm;
}

static void report_left_over(struct analyzer *analyzer, const struct process *process,
                             struct made_things *made, uint32_t i)
{
    const struct made_thing *thing = &made->list[i];
    const struct record record = {.api = thing->by->makes};
    const struct act act = {.did = DID_CALLED_FUNCTION, .call = call_of_api(thing->by->makes)};
    const struct one_call one = {.check = &check_never_released,
                                 .certainty = CERTAIN,
                                 .process = process,
                                 .record = &record,
                                 .act = &act,
                                 .site = thing->site};
    const struct values values = {
        .call = {call_of_api(thing->by->makes), call_of_api(thing->by->releases)},
        .flag = {is_comm(thing)},
    };
    for (uint32_t k = i; k < made->count; k++)
        made->list[k].is_reported |= is_from_same_place(thing, &made->list[k]);
    one_call_headline(analyzer, &one, HEADLINE_NEVER_RELEASED, ADVICE_RELEASE, &values);
}

static void made_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    for (int n = 0; n < analyzer->processes; n++) {
        const struct process *process = analyzer->process[n];
        if (!process || process->end_class != END_CLASS_CLEAN || process->lost.control)
            continue;
        struct made_things *made =
            state_find(analyzer, &check_never_released, OWNER_PROCESS, process->states);
        for (uint32_t i = 0; made && i < made->count; i++)
            if (is_left_over(process, made, i))
                report_left_over(analyzer, process, made, i);
    }
}

const struct check check_never_released = {
    .code = DC804,
    .name = "never-released",
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_PROCESS,
    .off_without = LOSS_CALLS,
    .needs = LACKS_CALLS | LACKS_ADDRESSES,
    .title = "communicators, windows, registrations or NCCL memory are never released",
    .text = "The process exited with status 0 and left something of NCCL. That is memory of "
            "ncclMemAlloc, or a registration or a window of a communicator that it destroyed "
            "first. Or it made communicators at one place, each when the one before was no longer "
            "used, and destroyed none.\n\n"
            "It shows as memory that grows, as a set-up that fails after some hours, or not at "
            "all: the end of the process releases everything. So it is a note. Communicators that "
            "are used until the process exits are not reported.\n\n"
            "It is certain. Windows and registrations that are made in an ncclGroup are not "
            "followed.",
    .causes = CAUSES(
        {"A communicator for each evaluation, checkpoint or restart, whose end was forgotten.",
         "The line is in a function that runs again and again."},
        {"An error path, or a return, between the two calls.",
         "Count both calls: ddpcheck sql DIR \"SELECT call, count(*) FROM v_event GROUP BY "
         "call\"."}),
    .source = "NCCL 2.29 user guide, \"Communicator Creation and Management Functions\" and \"User "
              "Buffer Registration\": what is created is destroyed, what is registered is "
              "deregistered",
    .example = "void *x;\nncclMemAlloc(&x, bytes);\nncclAllReduce(x, x, n, ncclFloat, ncclSum, "
               "comm, stream);\ncudaStreamSynchronize(stream);\nreturn 0;                    /* "
               "without ncclMemFree */\n",
    .fix_c = "ncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);\n"
             "cudaStreamSynchronize(stream);\nncclMemFree(x);\n",
    .fix_torch = "group = dist.new_group(ranks)\nevaluate(group)\n"
                 "dist.destroy_process_group(group)       # before the next new_group\n",
    .on = {[EVENT_LEAVE] = made_on_leave, [EVENT_FINISH] = made_on_finish},
    .state_bytes = {[OWNER_PROCESS] = sizeof(struct made_things)},
    .state_end = {[OWNER_PROCESS] = made_end},
};
