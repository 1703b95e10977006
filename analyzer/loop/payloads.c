/* payloads.c: gathers the payload hashes of an operation from all ranks. */
#include "analyzer/loop/payloads.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/base/invariant.h"
#include "lib/trace/names.h"

void payloads_free(struct payloads *payloads)
{
    struct payload *payload, *next;
    if (!payloads)
        return;
    HASH_ITER(hh, payloads->table, payload, next) {
        HASH_DEL(payloads->table, payload);
        free(payload);
    }
    free(payloads);
}

static void deliver(struct analyzer *analyzer, struct payload *payload)
{
    struct payloads *payloads = payload->comm->slot.payloads;
    HASH_DEL(payloads->table, payload);
    invariant(payloads->count, "payloads that are kept are counted");
    payloads->count--;
    const struct event event = {.kind = EVENT_PAYLOAD, .payload = payload};
    event_handle(analyzer, &event);
    free(payload);
}

/* Operations kept of a communicator; 0: its size is not known, or too large. */
static uint32_t limit_of(const struct comm *comm)
{
    uint32_t limit = comm->nranks > 0 ? PAYLOADS_CELLS_MAX / (uint32_t)comm->nranks : 0;
    if (limit < PAYLOADS_MIN)
        return 0;
    return limit > PAYLOADS_MAX ? PAYLOADS_MAX : limit;
}

/* The oldest go first: what is behind by much will not become complete. */
static void deliver_old(struct analyzer *analyzer, struct comm *comm, uint64_t complete)
{
    struct payload *oldest;
    while ((oldest = comm->slot.payloads->table) && oldest->key.kind == PAYLOAD_COLLECTIVE &&
           oldest->key.number + PAYLOADS_LAG < complete)
        deliver(analyzer, oldest);
}

/* NULL with errno = ENOMEM, or if there is none and it is not to be made. */
static struct payload *payload_get(struct analyzer *analyzer, struct comm *comm,
                                   const struct payload_key *key, bool make)
{
    struct payload *payload = NULL;
    if (!comm->slot.payloads && make)
        comm->slot.payloads = calloc(1, sizeof *comm->slot.payloads);
    if (!comm->slot.payloads)
        return NULL;
    TABLE_FIND(comm->slot.payloads->table, key, payload);
    if (payload || !make)
        return payload;
    if (comm->slot.payloads->count >= limit_of(comm))
        deliver(analyzer, comm->slot.payloads->table);
    uint32_t cells = key->kind == PAYLOAD_MESSAGE ? 1 : (uint32_t)comm->nranks;
    payload = calloc(1, sizeof *payload + cells * sizeof payload->cell[0]);
    if (!payload)
        return NULL;
    payload->key = *key;
    payload->comm = comm;
    payload->number = key->number;
    payload->cells = cells;
    TABLE_ADD(comm->slot.payloads->table, key, payload);
    if (!TABLE_ADDED(payload)) {
        free(payload);
        return NULL;
    }
    comm->slot.payloads->count++;
    return payload;
}

static struct payload_cell *cell_of(struct payload *payload, int rank)
{
    if (payload->key.kind == PAYLOAD_MESSAGE)
        return payload->cell;
    return rank >= 0 && (uint32_t)rank < payload->cells ? &payload->cell[rank] : NULL;
}

static struct payload_key operation_key(const struct process *process, uint16_t api,
                                        uint64_t number, uint64_t serial)
{
    if (api_class_of(api) == CLASS_P2P)
        return (struct payload_key){PAYLOAD_MESSAGE, (uint64_t)process->index, serial};
    return (struct payload_key){PAYLOAD_COLLECTIVE, 0, number};
}

/* A rank that sends nothing and receives what is its own alone, as of a Scatter that is not its
 * root, has no hash. */
static bool has_no_hash(const struct signature *signature, int rank)
{
    const struct kind *kind = kind_find(signature->api);
    return kind && !(kind->flags & (KIND_ALIKE | KIND_TO_PEER)) &&
           !kind_share_bytes((enum kind_share)kind->send, 1, signature->root == rank, 1);
}

static void complete(struct analyzer *analyzer, struct payload *payload)
{
    struct comm *comm = payload->comm;
    uint64_t number = payload->key.number;
    bool collective = payload->key.kind == PAYLOAD_COLLECTIVE;
    invariant(payload->complete < payload->cells, "each rank completes a payload once");
    if (++payload->complete < payload->cells) {
        /* Ranks of other hosts are not in this trace: what is through among those that are lets the
         * old ones go. */
        bool all_known = collective && comm->members < payload->cells &&
                         payload->complete >= comm->members;
        if (all_known)
            deliver_old(analyzer, comm, number);
        return;
    }
    deliver(analyzer, payload);
    if (collective)
        deliver_old(analyzer, comm, number);
}

void payloads_note_operation(struct analyzer *analyzer, const struct operation *operation)
{
    const struct record *record = &operation->record;
    struct comm *comm = operation->member->comm;
    if (!operation->process->hashes || record->flags & (RECORD_FLAG_CAPTURE | RECORD_FLAG_REPLAY) ||
        !record->op.count || !limit_of(comm) || record->api == API_ncclRecv)
        return;
    struct payload_key key =
        operation_key(operation->process, record->api, record->op.number, record->serial);
    struct payload *payload = payload_get(analyzer, comm, &key, true);
    struct payload_cell *cell = payload ? cell_of(payload, operation->member->rank) : NULL;
    if (!payload)
        analyzer->failed = true;
    if (!cell || cell->member)
        return;
    cell->member = operation->member;
    cell->site = operation->site;
    payload->number = record->op.number;
    if (!payload->signature.api)
        payload->signature = operation->signature;
    else if (signature_differs(&payload->signature, &operation->signature))
        payload->mixed = true;
    if (has_no_hash(&operation->signature, operation->member->rank))
        complete(analyzer, payload);
}

int payloads_feed_named(struct event *event)
{
    struct process *process = event->process;
    struct analyzer *analyzer = process->analyzer;
    const struct record *record = event->record;
    struct comm *comm = comm_find(analyzer, record->named.comm);
    struct member *member = comm ? member_find(analyzer, comm->id, record->named.rank) : NULL;
    if (!member || member->process != process || !limit_of(comm))
        return ENGINE_OK;
    struct payload_key key = {PAYLOAD_NAMED, record->named.name, record->named.number};
    struct payload *payload = payload_get(analyzer, comm, &key, true);
    struct payload_cell *cell = payload ? cell_of(payload, record->named.rank) : NULL;
    if (!payload)
        return ENGINE_FAILED;
    if (!cell || cell->member)
        return ENGINE_OK;
    cell->member = member;
    cell->site = event->site;
    cell->bytes = record->named.bytes;
    cell->before = member->next;
    payload->signature.api = API_ddpcheck_hash;
    return ENGINE_OK;
}

/* The same hash may come twice: the collector was killed in between. */
int payloads_feed_hash(struct event *event)
{
    struct process *process = event->process;
    struct analyzer *analyzer = process->analyzer;
    const struct record *record = event->record;
    struct comm *comm = comm_find(analyzer, record->hash.comm);
    unsigned what = record->hash.what;
    if (what >= HASH_WHATS)
        return ENGINE_SKIPPED;
    struct payload_key key =
        what == HASH_NAMED
            ? (struct payload_key){PAYLOAD_NAMED, record->hash.name, record->hash.number}
            : operation_key(process, record->hash.api, record->hash.number, record->hash.serial);
    struct payload *payload = comm ? payload_get(analyzer, comm, &key, false) : NULL;
    struct payload_cell *cell = payload ? cell_of(payload, record->hash.rank) : NULL;
    if (!cell || !cell->member || cell->member->process != process || cell->reported & 1u << what)
        return ENGINE_OK;
    cell->hash[what] = record->hash.hash;
    cell->reported |= (uint8_t)(1u << what);
    cell->expects = record->hash.flags >> HASH_EXPECTS;
    if (record->hash.flags & HASH_UNIFORM)
        cell->uniform |= (uint8_t)(1u << what);
    if (what == HASH_SEND_BEFORE || what == HASH_NAMED) {
        cell->nans = record->hash.nans;
        cell->infs = record->hash.infs;
    }
    if (cell->reported != cell->expects)
        return ENGINE_OK;
    complete(analyzer, payload);
    return ENGINE_OK;
}

int payloads_feed_hashing(struct event *event)
{
    event->process->hashes = event->record->hashing.entries != 0;
    return ENGINE_OK;
}

void payloads_finish(struct analyzer *analyzer, struct comm *comm)
{
    while (comm->slot.payloads && comm->slot.payloads->table)
        deliver(analyzer, comm->slot.payloads->table);
}

static bool before(const struct payload_group *a, const struct payload_group *b)
{
    return a->ranks > b->ranks || (a->ranks == b->ranks && a->first < b->first);
}

static void sort(struct payload_group *groups, int count)
{
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && before(&groups[k], &groups[k - 1]); k--) {
            struct payload_group other = groups[k];
            groups[k] = groups[k - 1];
            groups[k - 1] = other;
        }
}

int payload_groups(const struct payload *payload, enum hash_what what,
                   struct payload_group groups[PAYLOAD_GROUPS_MAX])
{
    int count = 0;
    for (uint32_t rank = 0; rank < payload->cells; rank++) {
        const struct payload_cell *cell = &payload->cell[rank];
        int i = 0;
        if (!(cell->reported & 1u << what))
            continue;
        while (i < count && groups[i].hash != cell->hash[what])
            i++;
        if (i == PAYLOAD_GROUPS_MAX)
            i--;
        if (i == count)
            groups[count++] = (struct payload_group){cell->hash[what], rank, 0};
        groups[i].ranks++;
    }
    sort(groups, count);
    return count;
}

int payload_group_of(const struct payload_cell *cell, enum hash_what what,
                     const struct payload_group *groups, int count)
{
    if (!(cell->reported & 1u << what))
        return -1;
    for (int i = 0; i < count; i++)
        if (groups[i].hash == cell->hash[what])
            return i;
    return count - 1;
}
