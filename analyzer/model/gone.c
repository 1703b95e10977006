/* gone.c: notes the communicators that every member destroyed. */
#include "analyzer/model/gone.h"

#include <stdlib.h>

#include "analyzer/model/watched.h"
#include "lib/base/invariant.h"

static uint64_t *identity_place(struct forgotten *forgotten, uint64_t comm)
{
    return &forgotten->identity[(comm ^ comm >> 32) % IDENTITIES];
}

void gone_note_identity(struct forgotten *forgotten, uint64_t comm)
{
    *identity_place(forgotten, comm) = comm;
}

bool forgotten_has(const struct analyzer *analyzer, uint64_t comm)
{
    return analyzer->forgotten && *identity_place(analyzer->forgotten, comm) == comm;
}

int forgotten_expect(struct analyzer *analyzer, struct comm *comm)
{
    struct forgotten *forgotten = analyzer->forgotten;
    if (!forgotten && !(forgotten = analyzer->forgotten = calloc(1, sizeof *forgotten)))
        return -1;
    if (comm->is_gone)
        return 0;
    invariant(forgotten->gone < analyzer->comm_count,
              "no more communicators are gone than were ever made");
    uint64_t used = analyzer->comm_count - forgotten->gone++;
    if (forgotten->most_used < used)
        forgotten->most_used = used;
    comm->is_gone = true;
    comm->gone_round = analyzer->judgements;
    if (comm->is_queued)
        return 0;
    comm->is_queued = true;
    invariant(!forgotten->last == !forgotten->count, "the queue of the gone has its count");
    *(forgotten->last ? &forgotten->last->gone_next : &forgotten->first) = comm;
    forgotten->last = comm;
    forgotten->count++;
    return 0;
}

void forgotten_recall(struct analyzer *analyzer, struct comm *comm)
{
    if (!comm->is_gone)
        return;
    comm->is_gone = false;
    invariant(analyzer->forgotten->gone, "communicators that are gone are counted");
    analyzer->forgotten->gone--;
    comm_watch(comm);
}

void forgotten_hold(struct comm *comm)
{
    comm->is_held = true;
}

uint64_t analyzer_forgotten_comms(const struct analyzer *analyzer)
{
    return analyzer->forgotten ? analyzer->forgotten->total : 0;
}
