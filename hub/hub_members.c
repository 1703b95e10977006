/* hub_members.c: keeps the table member_state for members of a job that gets on. The analyzer knows
 * only those whose records were asked for; the digests say how far all are. Members that are gone
 * leave the hub. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "hub/hub_internal.h"
#include "lib/base/clock.h"

static const uint64_t members_every_ns = 1000000000;
enum { PACE = 20 }; /* storing takes at most 1 / PACE of the hub's time */

/* Whether the analyzer knows no less than the digest. */
static bool is_known_better(struct hub *hub, const struct item_digest *digest)
{
    struct member_numbers numbers;
    return analyzer_member_numbers(hub->analyzer, digest->comm, digest->rank, &numbers) &&
           numbers.issued >= digest->issued && numbers.done >= digest->done;
}

static void store_digest(struct hub *hub, const struct hub_member *member,
                         const struct hub_process *process, uint64_t now_ns)
{
    const struct item_digest *digest = &member->digest;
    const struct member_state state = {
        .comm = digest->comm,
        .rank = digest->rank,
        .shown_rank = process->rank >= 0 ? process->rank : digest->rank,
        .nranks = member->comm->nranks,
        .process = process->number,
        .device = RECORD_NO_DEVICE,
        .issued = digest->issued,
        .started = digest->started,
        .done = digest->done,
        .where = "",
        .phase = "",
        .last_call = "",
    };
    struct error err;
    if (store_member(hub->store, &state, now_ns, &err) < 0)
        hub->failure = err;
}

/* Every rank has destroyed it, and what its members called is asked for if it differs. */
static bool comm_is_over(const struct hub_comm *comm)
{
    if (comm->known != comm->nranks || (comm->differs && !comm->difference_asked))
        return false;
    for (const struct hub_member *member = comm->members; member; member = member->comm_next)
        if (!(member->digest.flags & DIGEST_GONE))
            return false;
    return true;
}

static void take_from_process(struct hub_process *process)
{
    struct hub_member **link = &process->members;
    while (*link)
        if ((*link)->comm->is_over)
            *link = (*link)->process_next;
        else
            link = &(*link)->process_next;
}

static void free_comm(struct hub *hub, struct hub_comm *comm)
{
    while (comm->members) {
        struct hub_member *member = comm->members;
        comm->members = member->comm_next;
        HASH_DEL(hub->members, member);
        free(member);
        hub->counts.ranks--;
    }
    HASH_DEL(hub->comms, comm);
    free(comm);
}

/* Communicators that are over leave the hub with their members; the database keeps how far these
 * came. */
static void forget_finished_comms(struct hub *hub)
{
    struct hub_comm *comm, *next;
    bool any = false;
    for (comm = hub->comms; comm; comm = comm->hh.next)
        any |= comm->is_over = comm_is_over(comm);
    if (!any)
        return;
    for (struct hub_host *host = hub->hosts; host; host = host->hh.next)
        for (uint32_t i = 0; i < host->processes; i++)
            take_from_process(&host->process[i]);
    HASH_ITER(hh, hub->comms, comm, next)
        if (comm->is_over)
            free_comm(hub, comm);
}

void hub_store_members(struct hub *hub, uint64_t now_ns)
{
    uint64_t began_ns = monotonic_now_ns(), realtime_ns = realtime_now_ns();
    char alive[32];
    if (now_ns < hub->members_due_ns)
        return;
    snprintf(alive, sizeof alive, "%" PRIu64, realtime_ns);
    if (store_meta(hub->store, "alive_ns", alive, &hub->failure) < 0)
        return;
    for (struct hub_member *member = hub->members; member; member = member->hh.next) {
        const struct hub_process *process = hub_process_find(member->host, member->digest.process);
        if (!member->changed || !process)
            continue;
        member->changed = false;
        if (!is_known_better(hub, &member->digest))
            store_digest(hub, member, process, realtime_ns);
    }
    forget_finished_comms(hub);
    uint64_t pause_ns = PACE * (monotonic_now_ns() - began_ns);
    hub->members_due_ns = now_ns + (pause_ns > members_every_ns ? pause_ns : members_every_ns);
}
