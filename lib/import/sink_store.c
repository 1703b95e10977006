/* sink_store.c: the sorted records become a trace database. */
#include <stdlib.h>
#include <string.h>

#include "lib/import/sink.h"
#include "lib/trace/names.h"
#include "lib/trace/store.h"

enum { TRANSACTION = 1 << 17, PIECE = 64 };

/* Records that are written at once. */
struct record_piece {
    int process[PIECE];
    struct record record[PIECE];
    int count;
    uint32_t written; /* since the transaction began */
};

static int compare_numbers(const void *left, const void *right)
{
    const struct sink_parts *a = *(struct sink_parts *const *)left,
                            *b = *(struct sink_parts *const *)right;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Counts how many operations the numbers stand for, beyond one each. */
static int order_parts(struct import *import)
{
    for (struct sink_comm *comm = import->comms; comm; comm = comm->hh.next) {
        uint32_t count = HASH_COUNT(comm->parts);
        uint64_t before = 0;
        if (!count)
            continue;
        if (!(comm->order = malloc(count * sizeof(*comm->order))))
            return sink_no_memory(import);
        for (struct sink_parts *parts = comm->parts; parts; parts = parts->hh.next)
            comm->order[comm->order_count++] = parts;
        qsort(comm->order, count, sizeof(*comm->order), compare_numbers);
        for (uint32_t i = 0; i < count; i++)
            comm->order[i]->before = before += comm->order[i]->parts - 1;
    }
    return 0;
}

/* The operation's number on every rank, whatever any of them made of the numbers below it. */
static uint64_t spread_number(const struct sink_comm *comm, uint64_t number)
{
    uint32_t low = 0, high = comm ? comm->order_count : 0;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (comm->order[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? number + comm->order[low - 1]->before : number;
}

static const struct sink_comm *find_sink_comm(struct import *import, uint64_t id)
{
    struct sink_comm *comm;
    HASH_FIND(hh, import->comms, &id, sizeof id, comm);
    return comm;
}

/* What is known only now: how many operations came before, how many ranks there are. */
static void complete_record(struct import *import, const struct sorted *item, struct record *record)
{
    *record = item->record;
    if (record->time_ns < import->process[item->process]->first_ns)
        record->time_ns = import->process[item->process]->first_ns;
    if (api_class_of(record->api) == CLASS_COLLECTIVE)
        record->op.number =
            spread_number(find_sink_comm(import, record->op.comm), record->op.number) + item->part;
    if (record->api == API_notice_member) {
        int nranks = find_sink_comm(import, record->comm.comm)->nranks;
        record->comm.nranks = nranks > 0 ? nranks : 0;
    }
    if (record->api == API_notice_reached) {
        const struct sink_comm *comm = find_sink_comm(import, record->reached.comm);
        record->reached.issued = spread_number(comm, record->reached.issued);
        if (record->reached.done != IMPORT_UNKNOWN)
            record->reached.done = spread_number(comm, record->reached.done);
    }
}

static int store_processes(struct import *import, struct store *store, struct error *err)
{
    const struct import_judge *judge = import->options->judge;
    for (int i = 0; i < import->processes; i++) {
        const struct sink_process *process = import->process[i];
        const struct store_import reported = {process->source->name, process->title, process->file,
                                              process->info.lacks};
        if (store_process(store, &process->info, err) != i ||
            store_imported(store, i, &reported, err) ||
            (judge && judge->process(judge->context, i, &process->info, err)))
            return -1;
    }
    return 0;
}

static int write_records(struct record_piece *piece, struct store *store, struct error *err)
{
    int count = piece->count;
    piece->count = 0;
    if (count && store_events(store, piece->process, piece->record, count, err))
        return -1;
    piece->written += (uint32_t)count;
    if (piece->written < TRANSACTION)
        return 0;
    piece->written = 0;
    return store_commit(store, err) || store_begin(store, err) ? -1 : 0;
}

static void show_stored(struct import *import, uint64_t records)
{
    import->standing.records = records;
    import->standing.of_records = import->result.records;
    if (import->options->progress)
        import->options->progress(import->options->context, &import->standing);
}

static int store_records(struct import *import, struct store *store, struct error *err)
{
    const struct sorted *item;
    const struct import_judge *judge = import->options->judge;
    struct record_piece piece = {.count = 0};
    uint64_t stored = 0;
    int got;
    while ((got = sorter_next(import->sorter, &item, err)) > 0) {
        if (stored++ % PIECE == 0)
            show_stored(import, stored);
        struct record *record = &piece.record[piece.count];
        complete_record(import, item, record);
        piece.process[piece.count++] = (int)item->process;
        if ((judge && judge->record(judge->context, (int)item->process, record, err)) ||
            (piece.count == PIECE && write_records(&piece, store, err)))
            return -1;
    }
    if (got || write_records(&piece, store, err))
        return -1;
    return judge ? judge->end(judge->context, store, err) : 0;
}

int sink_store(struct import *import, const char *path)
{
    struct error err = {{0}}, ignored;
    struct store *store = NULL;
    if (import->failure.text[0] || order_parts(import))
        return -1;
    int result = sorter_finish(import->sorter, &err) || store_open(&store, path, &err) ||
                         store_is_new(store, &err) || store_begin(store, &err) ||
                         store_processes(import, store, &err) ||
                         store_records(import, store, &err) ||
                         store_meta(store, "ended", "imported", &err) || store_commit(store, &err)
                     ? -1
                     : 0;
    if (result && store)
        store_rollback(store);
    if (store_close(store, result ? &ignored : &err))
        result = -1;
    return result ? sink_failed(import, &err) : 0;
}

void sink_free(struct import *import)
{
    sorter_free(import->sorter);
    struct sink_comm *comm, *next_comm;
    HASH_ITER(hh, import->comms, comm, next_comm) {
        struct sink_parts *parts, *next_parts;
        HASH_ITER(hh, comm->parts, parts, next_parts) {
            HASH_DEL(comm->parts, parts);
            free(parts);
        }
        HASH_DEL(import->comms, comm);
        free(comm->order);
        free(comm);
    }
    HASH_CLEAR(hh, import->lanes);
    for (struct lane *lane = import->first_lane, *next; lane; lane = next) {
        next = lane->next;
        free(lane);
    }
    struct sink_peer *peer, *next_peer;
    HASH_ITER(hh, import->peers, peer, next_peer) {
        HASH_DEL(import->peers, peer);
        free(peer);
    }
    HASH_CLEAR(hh, import->member_table);
    for (int i = 0; i < import->members; i++)
        free(import->member[i]);
    HASH_CLEAR(hh, import->process_table);
    for (int i = 0; i < import->processes; i++) {
        free(import->process[i]->file);
        time_heap_free(&import->process[i]->to_come);
        free(import->process[i]);
    }
    free(import->member);
    free(import->process);
    free(import->reported);
}
