/* waits_nodes.c: creates the nodes of the wait graph, with the ranks that each wait is for. */
#include "analyzer/hang/waits_nodes.h"

#include <errno.h>
#include <stdlib.h>

#include "analyzer/model/array.h"
#include "analyzer/model/callbacks.h"
#include "analyzer/match/channel.h"
#include "analyzer/model/comm.h"
#include "analyzer/hang/pending_index.h"
#include "analyzer/model/progress.h"
#include "lib/trace/names.h"

enum {
    MISSING_MAX = 1 << 17,   /* ranks named in one wait; more are noise */
    SHRINK_ABSENT_MAX = 256, /* ranks that have not come to a shrink; of more nothing is said */
    SHRINK_STEPS_MAX = 1 << 14,
    CHUNK_OPS = 256
};

struct op_chunk {
    struct op_chunk *next;
    uint32_t used;
    struct waiting_op op[CHUNK_OPS];
};

static int node_add_missing(struct wait_node *node, int rank, struct member *member,
                            struct process *process, bool issued)
{
    if (node->missing_count == MISSING_MAX)
        return 0;
    if ((node->missing_count & (node->missing_count - 1)) == 0) { /* full at each power of two */
        uint32_t capacity = node->missing_count ? 2 * node->missing_count : 1;
        struct missing *grown = realloc(node->missing, capacity * sizeof *grown);
        if (!grown)
            return -1;
        node->missing = grown;
    }
    node->missing[node->missing_count++] =
        (struct missing){.rank = rank, .member = member, .process = process, .issued = issued};
    return 0;
}

static int node_add_behind(struct wait_node *node, struct waiting_op *op)
{
    struct waiting_op **grown =
        array_room(node->behind, sizeof(*grown), node->behind_count, &node->behind_capacity, 2);
    if (!grown)
        return -1;
    node->behind = grown;
    node->behind[node->behind_count++] = op;
    return 0;
}

/* The member has issued it; something may be ahead of it. */
static int add_issued(struct wait_graph *graph, struct wait_node *node, const struct member *member,
                      const struct channel *channel, bool receives)
{
    const struct pending *pending;
    if (pending_index_find(graph->index, member, channel, receives, node->number, &pending))
        return -1;
    if (!pending || member->aborted)
        return 0;
    if (!pending->serial.position && progress_has_started(member->process, pending))
        return 0;
    errno = 0;
    struct waiting_op *op = wait_op_get(graph, pending);
    if (op)
        return node_add_behind(node, op);
    return errno ? -1 : 0;
}

/* Its call in a group that is still open: it is no part of the sequence yet. */
static const struct operation *held_by(const struct member *member, const struct wait_node *node)
{
    enum api_class class = node->kind == WAIT_PEER ? CLASS_P2P : CLASS_COLLECTIVE;
    for (const struct thread *thread = member->process->threads; thread; thread = thread->hh.next)
        for (uint32_t i = 0; i < thread->group_calls; i++) {
            const struct record *record = &thread->group[i].record;
            if (thread->group[i].member == member && record->op.number == node->number &&
                api_class_of(record->api) == class &&
                (class == CLASS_COLLECTIVE || kind_receives(record->api) != node->receives))
                return &thread->group[i];
        }
    return NULL;
}

/* It issued the operation, and ended or aborted the communicator before it was done. A rank that
 * ended well counts only when nothing has come of it for long: its last progress may be read late,
 * and ranks that give up together do not do so at the same time. */
static bool has_left_it(struct wait_graph *graph, const struct member *member, uint64_t number)
{
    const struct process *process = member->process;
    if (!member->has_progress)
        return false;
    if (process->end_class == END_CLASS_CAUSE)
        return member->done <= number;
    uint64_t left_ns = process->end_ns, done = member->done;
    if (member->aborted) {
        left_ns = member->abort.site.time_ns;
        done = member->abort.done;
    } else if (process->end_class != END_CLASS_CLEAN) {
        return false;
    }
    bool is_long_ago = graph->now_ns >= left_ns + graph->patience_ns;
    graph->lasts &= is_long_ago;
    return done <= number && is_long_ago;
}

/* Whose host call has not come, or whose GPU work ended with its process; or whose stream is not
 * there yet. */
static int find_members(struct wait_graph *graph, struct wait_node *node)
{
    bool some_uncalled = false;
    for (uint32_t i = 0; i < node->comm->members; i++)
        some_uncalled |= node->comm->member[i]->next <= node->number;
    for (uint32_t i = 0; i < node->comm->members; i++) {
        struct member *member = node->comm->member[i];
        bool issued = member->next > node->number;
        /* As a watchdog does: those who have not called it are why. */
        bool gave_up = some_uncalled && member->aborted && !member->process->ending.has_exception;
        if (issued && (gave_up || !has_left_it(graph, member, node->number))) {
            if (add_issued(graph, node, member, NULL, false))
                return -1;
            continue;
        }
        if (node_add_missing(node, member->rank, member, member->process, issued))
            return -1;
        if (!issued && node->missing_count)
            node->missing[node->missing_count - 1].held = held_by(member, node);
    }
    return 0;
}

static int find_peer(struct wait_graph *graph, struct wait_node *node)
{
    int rank = node->receives ? node->sender : node->receiver;
    struct member *member = member_find(graph->analyzer, node->comm->id, rank);
    if (!member)
        return 0;
    if (!channel_is_waiting(node->channel, node->receives, node->number))
        return add_issued(graph, node, member, node->channel, !node->receives);
    if (node_add_missing(node, rank, member, member->process, false))
        return -1;
    node->missing[0].held = held_by(member, node);
    return 0;
}

/* That must be this rank. Old ranks of a communicator that grows keep their number. */
static struct process *absent_process(struct wait_graph *graph, const struct comm *comm, int rank)
{
    const struct member *old = member_find(graph->analyzer, comm->parent, rank);
    return comm->setup == WAIT_GROW && old ? old->process
                                           : comm_guess_process(graph->analyzer, comm, rank);
}

static int find_ranks_of_init(struct wait_graph *graph, struct wait_node *node)
{
    uint32_t next = 0;
    for (int rank = 0; rank < node->comm->nranks && node->missing_count < MISSING_MAX; rank++) {
        while (next < node->comm->members && node->comm->member[next]->rank < rank)
            next++;
        struct member *member = next < node->comm->members ? node->comm->member[next] : NULL;
        /* It came; it may have gone again, and not because of the launcher. */
        if (member && member->rank == rank) {
            if (!member->exists && process_is_gone(member->process) &&
                member->process->end_class != END_CLASS_CONSEQUENCE &&
                node_add_missing(node, rank, member, member->process, true))
                return -1;
            continue;
        }
        if (node_add_missing(node, rank, NULL, absent_process(graph, node->comm, rank), false))
            return -1;
    }
    return 0;
}

static bool has_called_it(const struct wait_node *node, const struct member *member)
{
    if (kind_is_counted(node->kind))
        return member->made[setup_rows[node->kind].counter] > node->number;
    return member->leaving || member->aborted || member->process->ended;
}

/* Finds, among the members that have not come to a shrink, the `left` whose ids add up to
 * `sum`, and marks them as left out. True if they were found. */
static bool find_excluded(struct member *const *member, uint32_t count, uint32_t left, uint64_t sum,
                          bool *excluded, uint32_t *steps)
{
    if (!left)
        return sum == 0;
    if (count < left || (*steps)++ > SHRINK_STEPS_MAX)
        return false;
    int32_t rank = member[count - 1]->rank;
    excluded[count - 1] = true;
    if (find_excluded(member, count - 1, left - 1,
                      sum - string_id((const char *)&rank, sizeof rank), excluded, steps))
        return true;
    excluded[count - 1] = false;
    return find_excluded(member, count - 1, left, sum, excluded, steps);
}

/* Ranks that are left out do not call it; the records do not list them. */
static int find_survivors(struct wait_node *node)
{
    struct member *absent[SHRINK_ABSENT_MAX] = {NULL};
    bool excluded[SHRINK_ABSENT_MAX] = {false};
    uint32_t count = 0, steps = 0;
    for (uint32_t i = 0; i < node->comm->members && count < SHRINK_ABSENT_MAX; i++)
        if (!has_called_it(node, node->comm->member[i]))
            absent[count++] = node->comm->member[i];
    if (count == SHRINK_ABSENT_MAX ||
        !find_excluded(absent, count, node->excluded_count, node->excluded, excluded, &steps))
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (!excluded[i] &&
            node_add_missing(node, absent[i]->rank, absent[i], absent[i]->process, false))
            return -1;
    return 0;
}

static int find_callers(struct wait_node *node)
{
    for (uint32_t i = 0; i < node->comm->members; i++) {
        struct member *member = node->comm->member[i];
        if (!has_called_it(node, member) &&
            node_add_missing(node, member->rank, member, member->process, false))
            return -1;
    }
    return 0;
}

static int find_whom(struct wait_graph *graph, struct wait_node *node)
{
    switch (setup_rows[node->kind].comers) {
    case COMERS_OPERATION:
        return node->kind == WAIT_PEER ? find_peer(graph, node) : find_members(graph, node);
    case COMERS_RANKS:
        return find_ranks_of_init(graph, node);
    case COMERS_SURVIVORS:
        return find_survivors(node);
    case COMERS_MEMBERS:
    case COMERS_LEAVERS:
        return find_callers(node);
    }
    return 0;
}

static bool same_wait(const struct wait_node *a, const struct wait_node *b)
{
    return a->kind == b->kind && a->comm == b->comm && a->number == b->number &&
           a->channel == b->channel && a->receives == b->receives;
}

/* A wait with its words; the node is first. */
struct named_wait {
    struct wait_node node;
    struct wait_words words;
};

static void wait_free(struct wait_node *node)
{
    free(node->missing);
    free(node->behind);
    free(node);
}

struct wait_node *wait_get(struct wait_graph *graph, const struct wait_node *key)
{
    uint64_t hash = (key->comm->id ^ key->number * UINT64_C(0x9e3779b97f4a7c15) ^
                     (uint64_t)key->kind << 7 ^ (uint64_t)(uint32_t)key->sender << 13 ^
                     (uint64_t)(uint32_t)key->receiver << 29);
    struct wait_node **bucket =
        &graph->bucket[(hash ^ hash >> 17 ^ hash >> 41) & (graph->buckets - 1)];
    for (struct wait_node *node = *bucket; node; node = node->bucket_next)
        if (same_wait(node, key)) {
            if (key->begin_ns < node->begin_ns)
                node->begin_ns = key->begin_ns;
            return node;
        }
    struct named_wait *named = calloc(1, sizeof *named);
    if (!named)
        return NULL;
    struct wait_node *node = &named->node;
    *node = *key;
    node->words = &named->words;
    node->component = -1;
    if (find_whom(graph, node)) {
        wait_free(node);
        return NULL;
    }
    node->bucket_next = *bucket;
    *bucket = node;
    node->next = graph->waits;
    graph->waits = node;
    return node;
}

/* In order of their making they lie beside each other: solving goes through all of them again and
 * again. NULL with errno = ENOMEM. */
static struct waiting_op *op_allocate(struct wait_graph *graph)
{
    if (!graph->chunks || graph->chunks->used == CHUNK_OPS) {
        struct op_chunk *chunk = malloc(sizeof *chunk);
        if (!chunk)
            return NULL;
        chunk->next = graph->chunks;
        chunk->used = 0;
        graph->chunks = chunk;
    }
    struct waiting_op *op = &graph->chunks->op[graph->chunks->used++];
    *op = (struct waiting_op){.pending = NULL};
    return op;
}

static void chunks_free(struct wait_graph *graph)
{
    while (graph->chunks) {
        struct op_chunk *next = graph->chunks->next;
        free(graph->chunks);
        graph->chunks = next;
    }
}

/* NULL with errno = ENOMEM, or 0 if there are too many. */
static struct waiting_op *op_new(struct wait_graph *graph, struct process *process)
{
    if (graph->op_count == graph->ops_max) {
        errno = 0;
        return NULL;
    }
    struct waiting_op *op = op_allocate(graph);
    if (!op)
        return NULL;
    op->process = process;
    op->previous = graph->last_op;
    if (graph->last_op)
        graph->last_op->next = op;
    else
        graph->ops = op;
    graph->last_op = op;
    graph->op_count++;
    return op;
}

struct waiting_op *wait_op_get(struct wait_graph *graph, const struct pending *pending)
{
    uint64_t hash = (uintptr_t)pending * UINT64_C(0x9e3779b97f4a7c15);
    struct waiting_op **bucket = &graph->op_bucket[hash >> 32 & (graph->op_buckets - 1)];
    for (struct waiting_op *op = *bucket; op; op = op->bucket_next)
        if (op->pending == pending)
            return op;
    struct waiting_op *op = op_new(graph, pending->member->process);
    if (!op)
        return NULL;
    op->pending = pending;
    op->started = progress_has_started(op->process, pending);
    op->bucket_next = *bucket;
    *bucket = op;
    return op;
}

struct waiting_op *wait_callback_get(struct wait_graph *graph, struct process *process,
                                     struct callback *callback)
{
    if (callback->node)
        return callback->node;
    struct waiting_op *op = op_new(graph, process);
    if (!op)
        return NULL;
    op->callback = callback;
    op->started = callback->thread != NULL;
    return callback->node = op;
}

struct expansion {
    struct wait_graph *graph;
    struct waiting_op *op;
};

static int op_add_ahead(struct waiting_op *op, struct waiting_op *ahead)
{
    if (!ahead)
        return errno ? -1 : 0;
    struct waiting_op **grown = array_room(op->ahead, sizeof(*grown), op->aheads, &op->capacity, 2);
    if (!grown)
        return -1;
    op->ahead = grown;
    op->ahead[op->aheads++] = ahead;
    return 0;
}

static int add_ahead(void *context, const struct pending *pending)
{
    struct expansion *expansion = context;
    errno = 0;
    return op_add_ahead(expansion->op, wait_op_get(expansion->graph, pending));
}

/* Host functions on the timeline up to the position. */
static int node_add_callbacks(struct wait_graph *graph, struct waiting_op *op, struct place upto)
{
    for (struct callback *callback = op->process->callbacks.first; callback;
         callback = callback->next) {
        if (callback->place.timeline != upto.timeline || callback->place.position > upto.position ||
            callback == op->callback)
            continue;
        errno = 0;
        if (op_add_ahead(op, wait_callback_get(graph, op->process, callback)))
            return -1;
    }
    return 0;
}

static int expand_callback(struct wait_graph *graph, struct waiting_op *op)
{
    struct expansion expansion = {graph, op};
    struct place before = {op->callback->place.timeline, op->callback->place.position - 1};
    if (op->started)
        return 0;
    return progress_visit_before(op->process, op->callback->place, add_ahead, &expansion) ||
                   node_add_callbacks(graph, op, before)
               ? -1
               : 0;
}

static int expand_ahead(struct wait_graph *graph, struct waiting_op *op)
{
    const struct pending *pending = op->pending;
    struct expansion expansion = {graph, op};
    if (progress_visit_ahead(op->process, pending, add_ahead, &expansion))
        return -1;
    if (op->started)
        return 0;
    int result = node_add_callbacks(graph, op, pending->place);
    for (uint32_t i = 0; i < pending->before.count && !result; i++)
        result = node_add_callbacks(graph, op, pending->before.entry[i]);
    return result;
}

static int expand(struct wait_graph *graph, struct waiting_op *op)
{
    const struct pending *pending = op->pending;
    if (op->callback)
        return expand_callback(graph, op);
    if (pending->member->aborted)
        return 0;
    if (expand_ahead(graph, op))
        return -1;
    if (kind_has(pending->signature.api, KIND_ONE_SIDED) && !pending->receives)
        return 0; /* a signal needs nobody */
    struct wait_node key = {
        .kind = pending->channel ? WAIT_PEER : WAIT_COLLECTIVE,
        .comm = pending->member->comm,
        .number = pending->number,
        .signature = pending->signature,
        .begin_ns = pending->site.time_ns,
    };
    if (pending->channel) {
        key.channel = pending->channel;
        key.sender = channel_sender(pending->channel);
        key.receiver = channel_receiver(pending->channel);
        key.receives = pending->receives;
    }
    op->wait = wait_get(graph, &key);
    return op->wait ? 0 : -1;
}

int wait_ops_expand(struct wait_graph *graph)
{
    struct waiting_op *op = graph->expanded ? graph->expanded->next : graph->ops;
    for (; op; op = op->next) {
        if (expand(graph, op))
            return -1;
        graph->expanded = op;
    }
    return 0;
}

void wait_nodes_free(struct wait_graph *graph)
{
    while (graph->waits) {
        struct wait_node *next = graph->waits->next;
        wait_free(graph->waits);
        graph->waits = next;
    }
    while (graph->ops) {
        struct waiting_op *next = graph->ops->next;
        if (graph->ops->callback)
            graph->ops->callback->node = NULL;
        free(graph->ops->ahead);
        graph->ops = next;
    }
    chunks_free(graph);
    free(graph->bucket);
    free(graph->op_bucket);
    pending_index_free(graph->index);
}
