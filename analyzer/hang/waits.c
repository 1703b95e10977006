/* waits.c: builds the graph of who waits for whom. */
#include "analyzer/hang/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/callbacks.h"
#include "analyzer/model/comm.h"
#include "analyzer/hang/pending_index.h"
#include "analyzer/model/process.h"
#include "analyzer/model/progress.h"
#include "analyzer/hang/waits_nodes.h"
#include "analyzer/match/window.h"
#include "lib/base/invariant.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

enum {
    WAITS_MAX = 256,      /* of one thread; leaving some out can only make it look less stuck */
    FIRST_OF_A_STREAM = 4 /* operations that are looked at although no thread waits for them */
};

uint64_t process_known_until(const struct process *process)
{
    return process->host->tick_ns;
}

uint64_t process_known_before(const struct process *process, uint64_t span_ns)
{
    uint64_t until_ns = process_known_until(process);
    return until_ns > span_ns ? until_ns - span_ns : 0;
}

bool process_is_gone(const struct process *process)
{
    return process &&
           (process->end_class == END_CLASS_CAUSE || process->end_class == END_CLASS_CLEAN);
}

struct building {
    struct wait_graph *graph;
    struct blocked *blocked;
};

/* Room for one more in an array that begins as `few`. Returns NULL when memory is short. */
static void *blocked_room(void *array, void *few, uint32_t count, uint32_t *capacity)
{
    if (count < *capacity)
        return array;
    if (array != few)
        return array_room(array, sizeof(void *), count, capacity, BLOCKED_FEW);
    void *grown = array_room(NULL, sizeof(void *), count, capacity, BLOCKED_FEW);
    return grown ? memcpy(grown, few, count * sizeof(void *)) : NULL;
}

static int blocked_add_wait(struct blocked *blocked, struct wait_node *node)
{
    if (!node->missing_count && !node->behind_count)
        return 0;
    struct wait_node **grown =
        blocked_room(blocked->wait, blocked->few_waits, blocked->waits, &blocked->capacity);
    if (!grown)
        return -1;
    blocked->wait = grown;
    blocked->wait[blocked->waits++] = node;
    return 0;
}

static int blocked_add_op(struct blocked *blocked, struct waiting_op *op)
{
    if (!op)
        return errno ? -1 : 0;
    struct waiting_op **grown =
        blocked_room(blocked->op, blocked->few_ops, blocked->ops, &blocked->op_capacity);
    if (!grown)
        return -1;
    blocked->op = grown;
    blocked->op[blocked->ops++] = op;
    return 0;
}

static int add_op(void *context, const struct pending *pending)
{
    struct building *building = context;
    errno = 0;
    return building->blocked->ops == WAITS_MAX
               ? 0
               : blocked_add_op(building->blocked, wait_op_get(building->graph, pending));
}

/* Host functions that must have returned before the call can. */
static int add_callbacks(struct wait_graph *graph, struct blocked *blocked)
{
    struct process *process = blocked->thread->process;
    for (struct callback *callback = process->callbacks.first; callback;
         callback = callback->next) {
        errno = 0;
        if (clock_at(&blocked->thread->waits_for, callback->place.timeline) >=
                callback->place.position &&
            blocked_add_op(blocked, wait_callback_get(graph, process, callback)))
            return -1;
    }
    return 0;
}

struct leaving {
    struct building building;
    const struct member *member;
};

static int add_own_op(void *context, const struct pending *pending)
{
    struct leaving *leaving = context;
    return pending->member == leaving->member ? add_op(&leaving->building, pending) : 0;
}

static struct wait_node setup_wait(const struct setup *setup, uint64_t begin_ns)
{
    return (struct wait_node){
        .kind = setup->kind,
        .comm = setup->comm,
        .number = setup->ordinal,
        .excluded_count = setup->excluded_count,
        .excluded = setup->excluded,
        .begin_ns = begin_ns,
    };
}

static int add_setup(struct building *building, const struct setup *setup)
{
    const struct wait_node key = setup_wait(setup, building->blocked->thread->enter_site.time_ns);
    struct wait_node *node = wait_get(building->graph, &key);
    if (!node || blocked_add_wait(building->blocked, node))
        return -1;
    /* "ncclCommDestroy ... waits for outstanding operations": both end what was issued first. */
    struct leaving leaving = {*building, setup->member};
    return setup->kind != WAIT_LEAVE || !setup->member
               ? 0
               : progress_visit_first(building->blocked->thread->process, WAITS_MAX, add_own_op,
                                      &leaving);
}

/* All that happened on the process's host until the site was known is seen. */
static bool is_settled(struct wait_graph *graph, const struct process *process,
                       const struct site *site)
{
    bool settled = graph->moment > MOMENT_GIVING_UP ||
                   process_known_until(process) >= site->time_ns + SETTLE_NS;
    graph->lasts &= settled;
    return settled;
}

static bool may_be_blocked(struct wait_graph *graph, const struct thread *thread)
{
    /* Setups in an open group do not block; the ncclGroupEnd does. */
    bool deferred = thread->group_depth && api_class_of(thread->enter.api) == CLASS_COMM;
    return !process_is_gone(thread->process) && thread->process->end_class != END_CLASS_PENDING &&
           !deferred && is_settled(graph, thread->process, &thread->enter_site);
}

static int add_blocked(struct wait_graph *graph, struct thread *thread)
{
    invariant(graph->moment > MOMENT_GIVING_UP ||
                  process_known_until(thread->process) >= thread->enter_site.time_ns + SETTLE_NS,
              "only a thread whose call has settled can be stuck");
    struct blocked *blocked = &graph->blocked[graph->blocked_count++];
    *blocked = (struct blocked){.thread = thread,
                                .wait = blocked->few_waits,
                                .capacity = BLOCKED_FEW,
                                .op = blocked->few_ops,
                                .op_capacity = BLOCKED_FEW,
                                .component = -1};
    thread->blocked_node = graph->blocked_count;
    struct building building = {graph, blocked};
    if (progress_visit(thread->process, &thread->waits_for, add_op, &building) ||
        add_callbacks(graph, blocked))
        return -1;
    for (uint32_t i = 0; i < thread->setups; i++)
        if (add_setup(&building, &thread->setup[i]))
            return -1;
    return 0;
}

struct wait_node *wait_graph_collective(struct wait_graph *graph, struct comm *comm,
                                        uint64_t number, const struct signature *signature,
                                        uint64_t begin_ns)
{
    struct wait_node key = {
        .kind = WAIT_COLLECTIVE,
        .comm = comm,
        .number = number,
        .signature = *signature,
        .begin_ns = begin_ns,
    };
    struct wait_node *node = wait_get(graph, &key);
    if (node)
        wait_graph_ask(graph, node);
    graph->lasts = false; /* the next has this wait only if it is asked for again */
    return node;
}

static int add_first_op(void *context, const struct pending *pending)
{
    struct wait_graph *graph = context;
    if (!is_settled(graph, pending->member->process, &pending->site))
        return 0;
    errno = 0;
    return wait_op_get(graph, pending) || !errno ? 0 : -1;
}

/* What no thread waits for can be stuck as well: a program may poll, or find out only at its end.
 */
static int add_ops_of_all(struct wait_graph *graph)
{
    for (int i = 0; i < graph->analyzer->processes; i++) {
        struct process *process = graph->analyzer->process[i];
        if (process && !process_is_gone(process) && process->end_class != END_CLASS_PENDING &&
            progress_visit_first(process, FIRST_OF_A_STREAM, add_first_op, graph))
            return -1;
    }
    return 0;
}

/* Calls that have returned and go on in the background. */
static int add_background(struct wait_graph *graph, const struct comm *comm)
{
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *member = comm->member[i];
        if (!member->background.goes_on || member->aborted || member->process->ended)
            continue;
        struct wait_node key =
            setup_wait(&member->background.setup, member->background.site.time_ns);
        key.waiter = member->process;
        if (!wait_get(graph, &key))
            return -1;
    }
    return 0;
}

const struct wait_node *wait_graph_background(const struct wait_graph *graph,
                                              const struct process *process)
{
    const struct member *member = process->members;
    while (member && !member->background.goes_on)
        member = member->process_next;
    if (!member || wait_graph_member(graph, member, process))
        return NULL;
    const struct wait_node key = setup_wait(&member->background.setup, 0);
    const struct wait_node *wait = graph->waits;
    while (wait && (wait->comm != key.comm || wait->kind != key.kind || wait->number != key.number))
        wait = wait->next;
    return wait;
}

/* Nonblocking communicators are set up in the background. */
static int add_initialising(struct wait_graph *graph)
{
    struct comm *comm;
    for (uint32_t n = 0; (comm = comm_watched(graph->analyzer, n)); n++) {
        const struct member *first = NULL;
        for (uint32_t i = 0; comm->initialising && i < comm->members && !first; i++) {
            const struct member *member = comm->member[i];
            if (member->initialising && !member->aborted && !member->process->ended)
                first = member;
        }
        if (comm->initialising && add_background(graph, comm))
            return -1;
        if (!first)
            continue;
        const struct wait_node key = {
            .kind = comm->setup,
            .comm = comm,
            .begin_ns = first->arrival.time_ns,
            .waiter = first->process,
        };
        if (!wait_get(graph, &key))
            return -1;
    }
    return 0;
}

/* Of imported operations nobody may say how far they are; one that a member has not issued yet is
 * done on none. */
static int add_unreported(struct wait_graph *graph)
{
    struct standing_apart apart;
    struct comm *comm = graph->analyzer->lacks & LACKS_STATE ? graph->analyzer->first_comm : NULL;
    for (; comm; comm = comm->next) {
        const struct slot *slot =
            comm_stands_apart(comm, LACKS_STATE, &apart) ? window_slot(comm, apart.least) : NULL;
        if (slot && slot->variants &&
            !wait_graph_collective(graph, comm, apart.least, &slot->first.signature,
                                   slot->first.site.time_ns))
            return -1;
    }
    return 0;
}

static int add_waits_of_blocked(struct wait_graph *graph)
{
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        struct blocked *blocked = &graph->blocked[i];
        for (uint32_t k = 0; k < blocked->ops; k++)
            if (blocked->op[k]->wait && blocked_add_wait(blocked, blocked->op[k]->wait))
                return -1;
    }
    return 0;
}

static int build(struct wait_graph *graph)
{
    struct analyzer *analyzer = graph->analyzer;
    for (struct thread *thread = analyzer->blocked; thread; thread = thread->blocked_next)
        if (may_be_blocked(graph, thread) && add_blocked(graph, thread))
            return -1;
    if (add_ops_of_all(graph) || add_initialising(graph) || add_unreported(graph) ||
        wait_ops_expand(graph) || add_waits_of_blocked(graph))
        return -1;
    return wait_graph_solve(graph);
}

/* When somebody ended the job: its processes were ended from outside, and none ended wrongly by
 * itself. 0 if nobody did. */
static uint64_t cut_off_ns(const struct analyzer *analyzer)
{
    uint64_t first_ns = 0;
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *process = analyzer->process[i];
        if (!process || !process->member_count)
            continue;
        if (process->end_class == END_CLASS_CAUSE)
            return 0;
        if (process->end_class == END_CLASS_CONSEQUENCE &&
            (!first_ns || process->end_ns < first_ns))
            first_ns = process->end_ns;
    }
    return first_ns;
}

uint64_t wait_ending_patience_ns(const struct analyzer *analyzer)
{
    uint64_t patience = analyzer->options.hang_after_ns;
    return patience < ENDING_PATIENCE_NS ? patience : ENDING_PATIENCE_NS;
}

static uint64_t patience_ns(const struct analyzer *analyzer, enum moment moment)
{
    uint64_t patience = wait_ending_patience_ns(analyzer);
    if (moment <= MOMENT_GIVING_UP || (moment == MOMENT_FINAL && !cut_off_ns(analyzer)))
        return analyzer->options.hang_after_ns;
    bool was_silent = analyzer->ending_silence_ns && patience > analyzer->ending_silence_ns / 2;
    return was_silent ? analyzer->ending_silence_ns / 2 : patience;
}

static void size_tables(struct wait_graph *graph)
{
    uint32_t processes = (uint32_t)graph->analyzer->processes;
    graph->ops_max = GRAPH_OPS_MAX + PROCESS_OPS_MAX * processes;
    for (graph->buckets = WAIT_BUCKETS; graph->buckets < processes;)
        graph->buckets *= 2;
    for (graph->op_buckets = OP_BUCKETS; graph->op_buckets < 2 * processes;)
        graph->op_buckets *= 2;
}

uint64_t wait_graph_last_tick_ns(const struct analyzer *analyzer)
{
    uint64_t last_ns = 0;
    for (const struct host *host = analyzer->hosts; host; host = host->hh.next)
        if (host->tick_ns > last_ns)
            last_ns = host->tick_ns;
    return last_ns;
}

int wait_graph_build(struct analyzer *analyzer, enum moment moment, struct wait_graph *graph)
{
    wait_graph_forget(analyzer);
    *graph = (struct wait_graph){.analyzer = analyzer,
                                 .moment = moment,
                                 .quitter = analyzer->quitter,
                                 .patience_ns = patience_ns(analyzer, moment),
                                 .now_ns = wait_graph_last_tick_ns(analyzer),
                                 .lasts = moment == MOMENT_TICK && !analyzer->ends_pending};
    uint32_t count = 0;
    uint64_t end_ns = moment == MOMENT_FINAL ? cut_off_ns(analyzer) : 0;
    if (end_ns && graph->now_ns > end_ns)
        graph->now_ns = end_ns; /* nobody waited after that */
    for (const struct thread *thread = analyzer->blocked; thread; thread = thread->blocked_next)
        count++;
    graph->blocked = calloc((size_t)count + 1, sizeof *graph->blocked);
    size_tables(graph);
    graph->bucket = calloc(graph->buckets, sizeof(*graph->bucket));
    graph->op_bucket = calloc(graph->op_buckets, sizeof(*graph->op_bucket));
    graph->index = pending_index_new(analyzer);
    if (graph->blocked && graph->bucket && graph->op_bucket && graph->index && !build(graph))
        return 0;
    wait_graph_free(graph);
    return -1;
}

void wait_graph_free(struct wait_graph *graph)
{
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        graph->blocked[i].thread->blocked_node = 0;
        if (graph->blocked[i].wait != graph->blocked[i].few_waits)
            free(graph->blocked[i].wait);
        if (graph->blocked[i].op != graph->blocked[i].few_ops)
            free(graph->blocked[i].op);
    }
    free(graph->blocked);
    wait_nodes_free(graph);
}

bool wait_graph_misses(const struct wait_graph *graph)
{
    for (const struct wait_node *wait = graph->waits; wait; wait = wait->next)
        if (wait->missing_count)
            return true;
    return false;
}

const struct waiting_op *waiting_op_culprit(const struct waiting_op *op)
{
    for (uint32_t steps = 0; !op->can_start && steps < GRAPH_OPS_MAX; steps++) {
        uint32_t i = 0;
        while (i < op->aheads && op->ahead[i]->can_finish)
            i++;
        if (i == op->aheads)
            break;
        op = op->ahead[i];
    }
    return op;
}

const struct missing *wait_node_missing(const struct wait_node *wait, int rank)
{
    uint32_t low = 0, high = wait->missing_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (wait->missing[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < wait->missing_count && wait->missing[low].rank == rank ? &wait->missing[low]
                                                                        : NULL;
}

const struct waiting_op *wait_node_behind(const struct wait_node *wait, int rank)
{
    uint32_t low = 0, high = wait->behind_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (wait->behind[middle]->pending->member->rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < wait->behind_count && wait->behind[low]->pending->member->rank == rank;
    return found ? wait->behind[low] : NULL;
}

const struct blocked *wait_graph_blocked(const struct wait_graph *graph,
                                         const struct thread *thread)
{
    invariant(!thread->blocked_node || graph->blocked[thread->blocked_node - 1].thread == thread,
              "a blocked thread and its place in the graph name each other");
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
    /* Where a process holds several ranks, another thread's wait is another rank's. */
    for (const struct thread *thread = process ? process->threads : NULL; thread && !blocked;
         thread = thread->hh.next)
        if (!member || thread_may_issue(thread, member))
            blocked = wait_graph_blocked(graph, thread);
    return blocked;
}
