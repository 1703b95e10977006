/* forgotten.c: forgets communicators that every member has destroyed. */
#include "analyzer/forgotten.h"

#include <stdlib.h>

#include "analyzer/hang/waits.h"
#include "analyzer/hazard/hazards.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/match/channel.h"
#include "analyzer/match/divergence.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/gone.h"
#include "analyzer/model/graphs.h"
#include "analyzer/model/progress.h"
#include "analyzer/speed/speed.h"
#include "analyzer/states.h"
#include "lib/base/invariant.h"

enum { KEPT_LEAST = 64 }; /* so that a sweep is for many */

/* The rank that people know of a process is its rank in this one. */
static bool shows_ranks(const struct comm *comm)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i]->process->top == comm->member[i])
            return true;
    return false;
}

/* All but what may be referred to. */
static void make_shell(struct analyzer *analyzer, struct comm *comm)
{
    wait_graph_forget(analyzer);
    payloads_finish(analyzer, comm);
    comm_remove(analyzer, comm);
    comm_slots_free(&comm->slot);
    for (uint32_t i = 0; i < comm->members; i++) {
        struct member *member = comm->member[i];
        clock_free(&member->launches.ahead_of_last);
        member_slots_free(&member->slot);
        member->issuers = 0;
        member->more_issuers = true;
        states_free(analyzer, OWNER_MEMBER, &member->states);
    }
    states_free(analyzer, OWNER_COMM, &comm->states);
    invariant(comm->is_gone, "only a communicator that all members destroyed is forgotten");
    gone_note_identity(analyzer->forgotten, comm->id);
    comm->gone_next = analyzer->forgotten->shells;
    analyzer->forgotten->shells = comm;
    analyzer->forgotten->shell_count++;
    analyzer->forgotten->total++;
}

static void hold_pending(void *context, const struct pending *pending)
{
    (void)context;
    forgotten_hold(pending->member->comm);
    if (pending->channel)
        channel_hold(pending->channel);
}

static void hold_member(void *context, const struct member *member)
{
    (void)context;
    forgotten_hold(member->comm);
}

static void hold_calls(const struct thread *thread)
{
    for (uint32_t i = 0; i < thread->setups; i++)
        forgotten_hold(thread->setup[i].comm);
    for (uint32_t i = 0; i < thread->group_calls; i++)
        forgotten_hold(thread->group[i].member->comm);
}

static void hold_referred(struct analyzer *analyzer)
{
    for (int i = 0; i < analyzer->processes; i++) {
        struct process *process = analyzer->process[i];
        if (!process)
            continue;
        progress_visit_all(process, hold_pending, NULL);
        hazards_visit_members(process, hold_member, NULL);
        graphs_visit_members(process, hold_member, NULL);
        for (struct thread *thread = process->threads; thread; thread = thread->hh.next)
            hold_calls(thread);
    }
    for (const struct comm *comm = analyzer->first_comm; comm; comm = comm->next)
        if (comm->slot.divergence && comm->slot.divergence->intended.comm)
            forgotten_hold(comm->slot.divergence->intended.comm);
    if (analyzer->slot.speed)
        speed_visit_comms(analyzer->slot.speed, forgotten_hold);
    event_handle(analyzer, &(struct event){.kind = EVENT_RELEASE});
}

static void free_member(const struct analyzer *analyzer, struct member *member)
{
    clock_free(&member->launches.ahead_of_last);
    member_slots_free(&member->slot);
    states_free(analyzer, OWNER_MEMBER, &member->states);
    free(member);
}

void forgotten_free_comm(const struct analyzer *analyzer, struct comm *comm)
{
    for (uint32_t i = 0; i < comm->members; i++)
        free_member(analyzer, comm->member[i]);
    states_free(analyzer, OWNER_COMM, &comm->states);
    comm_slots_free(&comm->slot);
    comm_free(comm);
}

static bool comm_is_listed(struct analyzer *analyzer, uint64_t comm)
{
    return comm_find(analyzer, comm) != NULL;
}

/* Frees the shells that nothing refers to any more. */
static void free_shells(struct analyzer *analyzer)
{
    struct forgotten *forgotten = analyzer->forgotten;
    struct comm *shells = forgotten->shells, *next;
    for (struct comm *comm = shells; comm; comm = comm->gone_next)
        comm->is_held = false;
    hold_referred(analyzer);
    forgotten->shells = NULL;
    forgotten->shell_count = 0;
    for (struct comm *comm = shells; comm; comm = next) {
        next = comm->gone_next;
        if (comm->is_held) {
            comm->gone_next = forgotten->shells;
            forgotten->shells = comm;
            forgotten->shell_count++;
            continue;
        }
        if (analyzer->slot.speed)
            speed_forget(analyzer->slot.speed, comm);
        forgotten_free_comm(analyzer, comm);
    }
    channels_forget(analyzer, comm_is_listed);
}

/* Operations of open iterations may hold the shells, and a job that makes communicators all the
 * time may have no iteration that ends. */
static void sweep(struct analyzer *analyzer)
{
    struct forgotten *forgotten = analyzer->forgotten;
    free_shells(analyzer);
    if (forgotten->shell_count > KEPT_LEAST && analyzer->slot.speed) {
        speed_drop_gone(analyzer->slot.speed);
        free_shells(analyzer);
    }
    forgotten->swept = forgotten->shell_count;
}

/* What was judged once will not change. */
static void stop_watching(struct analyzer *analyzer)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < analyzer->watched.count; i++) {
        struct comm *comm = analyzer->watched.comm[i];
        comm->is_watched = !comm->is_gone || comm->gone_round == analyzer->judgements;
        if (comm->is_watched)
            analyzer->watched.comm[kept++] = comm;
    }
    analyzer->watched.count = kept;
}

void forgotten_tick(struct analyzer *analyzer)
{
    struct forgotten *forgotten = analyzer->forgotten;
    analyzer->judgements++;
    if (!forgotten)
        return;
    uint64_t kept = forgotten->most_used > KEPT_LEAST ? forgotten->most_used : KEPT_LEAST;
    stop_watching(analyzer);
    while (forgotten->count > kept && forgotten->first->gone_round + 1 < analyzer->judgements) {
        struct comm *comm = forgotten->first;
        invariant(comm->is_queued, "what is in the queue of the gone is marked so");
        forgotten->first = comm->gone_next;
        comm->gone_next = NULL;
        comm->is_queued = false;
        if (!forgotten->first)
            forgotten->last = NULL;
        forgotten->count--;
        if (comm->is_gone && !shows_ranks(comm))
            make_shell(analyzer, comm);
    }
    if (forgotten->shell_count >= KEPT_LEAST + 2 * forgotten->swept)
        sweep(analyzer);
}

void forgotten_free(struct analyzer *analyzer)
{
    for (struct comm *comm = analyzer->forgotten ? analyzer->forgotten->shells : NULL, *next; comm;
         comm = next) {
        next = comm->gone_next;
        forgotten_free_comm(analyzer, comm);
    }
    free(analyzer->forgotten);
    analyzer->forgotten = NULL;
}
