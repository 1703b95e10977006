#include "analyzer/waits.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/array.h"
#include "analyzer/channel.h"
#include "analyzer/comm.h"
#include "analyzer/process.h"
#include "analyzer/progress.h"
#include "lib/trace/names.h"

enum {
    MISSING_MAX = 4096,     /* ranks named in one wait */
    WAITS_MAX = 256         /* of one thread; leaving some out can only make it look less stuck */
};

uint64_t process_known_until(const struct process *process)
{
    return process->host->tick_ns;
}

static int add_missing(struct wait_node *node, int rank, struct member *member, struct process *process, bool issued)
{
    if (node->missing_count == MISSING_MAX)
        return 0;
    if ((node->missing_count & (node->missing_count - 1)) == 0) {      /* full at each power of two */
        uint32_t capacity = node->missing_count ? 2 * node->missing_count : 1;
        struct missing *grown = realloc(node->missing, capacity * sizeof *grown);
        if (!grown)
            return -1;
        node->missing = grown;
    }
    node->missing[node->missing_count++] = (struct missing){rank, member, process, false, issued};
    return 0;
}

bool process_is_gone(const struct process *process)
{
    return process && (process->end_class == END_CLASS_CAUSE || process->end_class == END_CLASS_CLEAN);
}

/* Whose host call has not come, or whose GPU work ended with its process. */
static int find_missing_in_collective(struct wait_node *node)
{
    for (uint32_t i = 0; i < node->comm->members; i++) {
        struct member *member = node->comm->member[i];
        bool issued = member->next > node->number;
        bool died_in_it = issued && member->process->end_class == END_CLASS_CAUSE && member->has_progress &&
                          member->done <= node->number;
        if ((!issued || died_in_it) && add_missing(node, member->rank, member, member->process, issued))
            return -1;
    }
    return 0;
}

static int find_missing_peer(struct wait_graph *graph, struct wait_node *node)
{
    int rank = node->receives ? node->sender : node->receiver;
    struct member *member = member_find(graph->analyzer, node->comm->id, rank);
    return member ? add_missing(node, rank, member, member->process, false) : 0;
}

static int find_missing_in_init(struct wait_graph *graph, struct wait_node *node)
{
    uint32_t next = 0;
    for (int rank = 0; rank < node->comm->nranks && node->missing_count < MISSING_MAX; rank++) {
        while (next < node->comm->members && node->comm->member[next]->rank < rank)
            next++;
        struct member *member = next < node->comm->members ? node->comm->member[next] : NULL;
        if (member && member->rank == rank) {       /* known at all: it came; it may have gone again */
            if (!member->exists && process_is_gone(member->process) && add_missing(node, rank, member, member->process, true))
                return -1;
            continue;
        }
        if (add_missing(node, rank, NULL, comm_guess_process(graph->analyzer, node->comm, rank), false))
            return -1;
    }
    return 0;
}

static int find_missing_in_setup(struct wait_node *node)
{
    for (uint32_t i = 0; i < node->comm->members; i++) {
        struct member *member = node->comm->member[i];
        bool came = node->kind == WAIT_SPLIT ? member->splits > node->number
                                             : member->leaving || member->aborted || member->process->ended;
        if (!came && add_missing(node, member->rank, member, member->process, false))
            return -1;
    }
    return 0;
}

static int find_missing(struct wait_graph *graph, struct wait_node *node)
{
    switch (node->kind) {
    case WAIT_COLLECTIVE: return find_missing_in_collective(node);
    case WAIT_PEER: return find_missing_peer(graph, node);
    case WAIT_INIT: return find_missing_in_init(graph, node);
    case WAIT_SPLIT: case WAIT_LEAVE: return find_missing_in_setup(node);
    }
    return 0;
}

static bool same_wait(const struct wait_node *a, const struct wait_node *b)
{
    return a->kind == b->kind && a->comm == b->comm && a->number == b->number && a->sender == b->sender &&
           a->receiver == b->receiver && a->receives == b->receives;
}

/* The node of this wait, made if it is not there. */
static struct wait_node *wait_get(struct wait_graph *graph, const struct wait_node *key)
{
    uint64_t hash = (key->comm->id ^ key->number * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)key->kind << 7 ^
                     (uint64_t)(uint32_t)key->sender << 13 ^ (uint64_t)(uint32_t)key->receiver << 29);
    struct wait_node **bucket = &graph->bucket[(hash ^ hash >> 17 ^ hash >> 41) % 256];
    for (struct wait_node *node = *bucket; node; node = node->bucket_next)
        if (same_wait(node, key)) {
            if (key->begin_ns < node->begin_ns)
                node->begin_ns = key->begin_ns;
            return node;
        }
    struct wait_node *node = malloc(sizeof *node);
    if (!node)
        return NULL;
    *node = *key;
    if (find_missing(graph, node)) {
        free(node->missing);
        free(node);
        return NULL;
    }
    node->bucket_next = *bucket;
    *bucket = node;
    node->next = graph->waits;
    graph->waits = node;
    return node;
}

struct building {
    struct wait_graph *graph;
    struct blocked *blocked;
};

static int add_wait(struct building *building, const struct wait_node *key)
{
    struct blocked *blocked = building->blocked;
    if (blocked->waits == WAITS_MAX)
        return 0;
    struct wait_node *node = wait_get(building->graph, key);
    if (!node)
        return -1;
    if (!node->missing_count)
        return 0;
    struct wait_node **grown = array_room(blocked->wait, sizeof(*grown), blocked->waits, &blocked->capacity, 4);
    if (!grown)
        return -1;
    blocked->wait = grown;
    blocked->wait[blocked->waits++] = node;
    return 0;
}

static int add_pending(void *context, const struct pending *pending)
{
    struct wait_node key = {
        .kind = pending->channel ? WAIT_PEER : WAIT_COLLECTIVE, .comm = pending->member->comm,
        .number = pending->number, .signature = pending->signature, .begin_ns = pending->site.time_ns,
    };
    if (pending->channel) {
        if (!channel_is_waiting(pending->channel, pending->receives, pending->number))
            return 0;
        key.sender = channel_sender(pending->channel);
        key.receiver = channel_receiver(pending->channel);
        key.receives = pending->receives;
    }
    return add_wait(context, &key);
}

static int add_setup(struct building *building, const struct setup *setup)
{
    static const enum wait_kind kinds[] = {
        [SETUP_INIT] = WAIT_INIT, [SETUP_SPLIT] = WAIT_SPLIT, [SETUP_LEAVE] = WAIT_LEAVE,
    };
    struct wait_node key = {
        .kind = kinds[setup->kind], .comm = setup->comm, .number = setup->ordinal,
        .begin_ns = building->blocked->thread->enter_site.time_ns,
    };
    return add_wait(building, &key);
}

static bool is_settled(const struct wait_graph *graph, const struct thread *thread)
{
    return graph->final || process_known_until(thread->process) >= thread->enter_site.time_ns + SETTLE_NS;
}

static bool may_be_blocked(const struct wait_graph *graph, const struct thread *thread)
{
    /* Setups in an open group do not block; the ncclGroupEnd does. */
    bool deferred = thread->group_depth && api_class_of(thread->enter.api) == CLASS_COMM;
    return !process_is_gone(thread->process) && thread->process->end_class != END_CLASS_PENDING && !deferred &&
           is_settled(graph, thread);
}

static int add_blocked(struct wait_graph *graph, struct thread *thread)
{
    struct blocked *blocked = &graph->blocked[graph->blocked_count++];
    *blocked = (struct blocked){.thread = thread, .component = -1};
    thread->blocked_node = graph->blocked_count;
    struct building building = {graph, blocked};
    if (progress_visit(thread->process, &thread->waits_for, add_pending, &building))
        return -1;
    for (uint32_t i = 0; i < thread->setups; i++)
        if (add_setup(&building, &thread->setup[i]))
            return -1;
    return 0;
}

static bool thread_can_go_on(const struct wait_graph *graph, const struct thread *thread)
{
    return !thread->blocked_node || graph->blocked[thread->blocked_node - 1].can_go_on;
}

/* Any thread that is known to use NCCL could issue what a member without an issuer has to. */
static bool process_can_come(const struct wait_graph *graph, const struct process *process)
{
    bool any = false;
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next) {
        if (!thread->uses_nccl)
            continue;
        any = true;
        if (thread_can_go_on(graph, thread))
            return true;
    }
    return !any;
}

static bool can_come(const struct wait_graph *graph, const struct wait_node *node, const struct missing *missing)
{
    if (!missing->process)
        return true;
    if (missing->issued || process_is_gone(missing->process))
        return false;
    const struct member *member = missing->member;
    if (!member)
        return process_can_come(graph, missing->process);
    if ((member->leaving || member->aborted) && node->kind != WAIT_LEAVE)
        return false;
    if (member->more_issuers || missing->process->end_class == END_CLASS_PENDING)
        return true;
    if (!member->issuers)
        return process_can_come(graph, missing->process);
    for (uint32_t i = 0; i < member->issuers; i++)
        if (thread_can_go_on(graph, member->issuer[i]))
            return true;
    return false;
}

static bool reduce_once(struct wait_graph *graph)
{
    bool changed = false;
    for (struct wait_node *node = graph->waits; node; node = node->next) {
        if (node->satisfiable)
            continue;
        bool all = true;
        for (uint32_t i = 0; i < node->missing_count; i++) {
            node->missing[i].can_come = can_come(graph, node, &node->missing[i]);
            all = all && node->missing[i].can_come;
        }
        node->satisfiable = all;
        changed = changed || all;
    }
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        struct blocked *blocked = &graph->blocked[i];
        bool all = true;
        for (uint32_t k = 0; k < blocked->waits && all; k++)
            all = blocked->wait[k]->satisfiable;
        changed = changed || (all && !blocked->can_go_on);
        blocked->can_go_on = all;
    }
    return changed;
}

static int root_of(const int *parent, int process)
{
    while (parent[process] != process)
        process = parent[process];
    return process;
}

static void unite(int *parent, int a, int b)
{
    a = root_of(parent, a);
    b = root_of(parent, b);
    if (a != b)
        parent[a > b ? a : b] = a > b ? b : a;
}

static int find_components(struct wait_graph *graph)
{
    int *parent = malloc(((size_t)graph->analyzer->processes + 1) * sizeof *parent);
    if (!parent)
        return -1;
    for (int i = 0; i < graph->analyzer->processes; i++)
        parent[i] = i;
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        const struct blocked *blocked = &graph->blocked[i];
        for (uint32_t k = 0; !blocked->can_go_on && k < blocked->waits; k++)
            for (uint32_t m = 0; !blocked->wait[k]->satisfiable && m < blocked->wait[k]->missing_count; m++) {
                const struct missing *missing = &blocked->wait[k]->missing[m];
                if (!missing->can_come && missing->process)
                    unite(parent, blocked->thread->process->index, missing->process->index);
            }
    }
    for (uint32_t i = 0; i < graph->blocked_count; i++)
        if (!graph->blocked[i].can_go_on)
            graph->blocked[i].component = root_of(parent, graph->blocked[i].thread->process->index);
    free(parent);
    return 0;
}

struct wait_node *wait_graph_collective(struct wait_graph *graph, struct comm *comm, uint64_t number,
                                        const struct signature *signature, uint64_t begin_ns)
{
    struct wait_node key = {
        .kind = WAIT_COLLECTIVE, .comm = comm, .number = number, .signature = *signature, .begin_ns = begin_ns,
    };
    struct wait_node *node = wait_get(graph, &key);
    for (uint32_t i = 0; node && i < node->missing_count; i++)
        node->missing[i].can_come = can_come(graph, node, &node->missing[i]);
    return node;
}

int wait_graph_build(struct analyzer *analyzer, bool final, struct wait_graph *graph)
{
    *graph = (struct wait_graph){.analyzer = analyzer, .final = final};
    uint32_t count = 0;
    for (const struct host *host = analyzer->hosts; host; host = host->next)
        if (host->tick_ns > graph->now_ns)
            graph->now_ns = host->tick_ns;
    for (const struct thread *thread = analyzer->blocked; thread; thread = thread->blocked_next)
        count++;
    graph->blocked = calloc((size_t)count + 1, sizeof *graph->blocked);
    if (!graph->blocked)
        return -1;
    for (struct thread *thread = analyzer->blocked; thread; thread = thread->blocked_next)
        if (may_be_blocked(graph, thread) && add_blocked(graph, thread)) {
            wait_graph_free(graph);
            return -1;
        }
    while (reduce_once(graph))
        ;
    if (find_components(graph)) {
        wait_graph_free(graph);
        return -1;
    }
    return 0;
}

void wait_graph_free(struct wait_graph *graph)
{
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        graph->blocked[i].thread->blocked_node = 0;
        free(graph->blocked[i].wait);
    }
    free(graph->blocked);
    while (graph->waits) {
        struct wait_node *next = graph->waits->next;
        free(graph->waits->missing);
        free(graph->waits);
        graph->waits = next;
    }
}

const struct blocked *wait_graph_blocked(const struct wait_graph *graph, const struct thread *thread)
{
    return thread->blocked_node ? &graph->blocked[thread->blocked_node - 1] : NULL;
}

struct wait_node *blocked_reason(const struct blocked *blocked)
{
    struct wait_node *reason = NULL;
    for (uint32_t i = 0; i < blocked->waits; i++) {
        struct wait_node *wait = blocked->wait[i];
        if (!reason || (reason->satisfiable && !wait->satisfiable) ||
            (reason->satisfiable == wait->satisfiable && wait->begin_ns < reason->begin_ns))
            reason = wait;
    }
    return reason;
}

const struct blocked *wait_graph_member(const struct wait_graph *graph, const struct member *member,
                                        const struct process *process)
{
    const struct blocked *blocked = NULL;
    for (uint32_t i = 0; member && i < member->issuers && !blocked; i++)
        blocked = wait_graph_blocked(graph, member->issuer[i]);
    for (const struct thread *thread = process ? process->threads : NULL; thread && !blocked; thread = thread->hh.next)
        blocked = wait_graph_blocked(graph, thread);
    return blocked;
}
