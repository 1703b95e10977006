/* hang_stalled.c: reports a job in which nothing has happened for long and that no other finding
 * explains: who waits in what, and where everyone is. */
#include "analyzer/checks/hang/hang_stalled.h"

#include "analyzer/findings.h"
#include "analyzer/hang/where.h"
#include "analyzer/model/process.h"
#include "analyzer/model/comm.h"
#include "lib/trace/names.h"

enum { RANKS_BYTES = 128 };

static const char stalled_todo[] =
    "Look at the stacks of all ranks (ddpcheck report shows them): a lock, a file or another "
    "library that some rank waits for; then at the GPUs (dmesg, nvidia-smi) and the network.";

/* A mismatch, a hang, or what is certain to be wrong may be the cause. */
static bool is_explained(const struct analyzer *analyzer)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct reported *reported = &analyzer->reported[i];
        const struct finding *finding = &reported->finding;
        bool may_hang = reported->check->family == FAMILY_MATCH ||
                        reported->check->family == FAMILY_HANG || finding->certainty == CERTAIN;
        if (!reported->suppressed && finding->state == FINDING_OPEN && may_hang &&
            (finding->severity == SEVERITY_ERROR || reported->check->family == FAMILY_HANG))
            return true;
    }
    return false;
}

static uint64_t last_sign_of_life(const struct process *process)
{
    uint64_t last_ns = process->last_ns > process->gpu_ns ? process->last_ns : process->gpu_ns;
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next)
        if (last_ns < thread->last_ns)
            last_ns = thread->last_ns;
    return last_ns;
}

/* Every process that is still there uses NCCL and has done nothing for so long. A source that does
 * not say when calls return shows no silence. */
static bool all_are_silent(const struct wait_graph *graph)
{
    const struct analyzer *analyzer = graph->analyzer;
    uint32_t members = 0;
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *process = analyzer->process[i];
        if (!process || (process->ended && process->end_class != END_CLASS_PENDING))
            continue;
        if (process->ended || process->info.lacks || process->lost_control ||
            process_known_until(process) < last_sign_of_life(process) + graph->patience_ns ||
            graph->now_ns < last_sign_of_life(process) + graph->patience_ns)
            return false;
        members += process->member_count;
    }
    return members > 0;
}

static bool is_in_nccl_call(const struct thread *thread)
{
    switch (api_class_of(thread->enter.api)) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
    case CLASS_GROUP:
    case CLASS_COMM:
        return true;
    default:
        return false;
    }
}

/* Somebody waits for NCCL. */
static const struct blocked *find_waiting(const struct wait_graph *graph)
{
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        const struct blocked *blocked = &graph->blocked[i];
        if (blocked->waits || blocked->ops || is_in_nccl_call(blocked->thread))
            return blocked;
    }
    return NULL;
}

static void add_place(struct draft *draft, const struct wait_graph *graph,
                      const struct process *process, const struct member *member)
{
    struct where where;
    where_find(graph, process, member, &where);
    struct finding_side *side = NULL;
    for (int i = 0; i < draft->finding.sides && !side; i++)
        if (act_equal(&draft->finding.side[i].act, &where.act))
            side = &draft->finding.side[i];
    if (!side)
        side = draft_side(draft, &where.act, &where.site);
    if (!side)
        side = &draft->finding.side[FINDING_SIDES_MAX - 1];
    int rank = member ? member_shown_rank(member) : process_shown_rank(process);
    if (rankset_add(&side->ranks, rank >= 0 ? rank : process->index))
        draft->failed = true;
    draft_cover(draft, process);
}

static void add_places(struct draft *draft, const struct wait_graph *graph)
{
    for (int i = 0; i < graph->analyzer->processes; i++) {
        const struct process *process = graph->analyzer->process[i];
        if (!process)
            continue;
        const struct comm *comm = process->members ? process->members->comm : NULL;
        if (!process->several_ranks) {
            add_place(draft, graph, process, NULL);
            continue;
        }
        for (const struct member *member = process->members; member; member = member->process_next)
            if (member->comm == comm)
                add_place(draft, graph, process, member);
    }
}

/* The operation that the waiting thread waits for, which everyone has called. */
static const struct pending *awaited_operation(const struct blocked *blocked)
{
    for (uint32_t i = 0; blocked && i < blocked->ops; i++)
        if (blocked->op[i]->pending && !blocked->op[i]->pending->channel)
            return blocked->op[i]->pending;
    return NULL;
}

/* A rank without a trace may be where the others wait for it. */
static bool has_untraced(const struct analyzer *analyzer)
{
    for (const struct comm *comm = analyzer->first_comm; comm; comm = comm->next)
        if (comm_has_untraced(comm))
            return true;
    return false;
}

/* Words that need no "is" before them. */
static bool has_verb(enum did did)
{
    switch (did) {
    case DID_EXITED:
    case DID_ENDING:
    case DID_KILLED:
    case DID_KILLED_FOR_MEMORY:
    case DID_GONE:
    case DID_ENDED:
        return true;
    default:
        return false;
    }
}

static void stalled_describe(struct draft *draft, const struct pending *operation)
{
    struct text what = {0};
    char ranks[RANKS_BYTES];
    char call[256], name[COMM_TITLE_BYTES];
    if (operation)
        text_add(&what, "%s #%llu of %s, which every rank has called, does not end",
                 signature_text(&operation->signature, call, sizeof call),
                 (unsigned long long)operation->number, comm_title(operation->member->comm, name));
    else
        text_add(&what, "the job makes no progress");
    for (int i = 0; i < draft->finding.sides; i++) {
        const struct finding_side *side = &draft->finding.side[i];
        bool one = rankset_count(&side->ranks) == 1;
        const char *verb = one ? "is " : "are ";
        text_add(&what, "%s%s %s %s", i ? "; " : ": ", one ? "rank" : "ranks",
                 rankset_text(&side->ranks, ranks, sizeof ranks),
                 has_verb(side->act.did) ? "" : verb);
        act_add(&what, &side->act);
    }
    draft_say(draft, &what, stalled_todo);
}

void hang_report_stalled(struct analyzer *analyzer, const struct wait_graph *graph)
{
    if (graph->moment == MOMENT_FINAL || !all_are_silent(graph) || has_untraced(analyzer) ||
        is_explained(analyzer))
        return;
    const struct blocked *blocked = find_waiting(graph);
    /* Ranks that only run are slow or stuck: long silence shows it, the end of a trace does not. */
    bool was_silent = graph->moment == MOMENT_ENDING && analyzer->ending_silence_ns;
    if (!blocked && !was_silent)
        return; /* nobody waits: the program may compute on the host */
    const struct pending *operation = awaited_operation(blocked);
    struct draft draft =
        draft_new(&check_stuck_operation, POSSIBLE, operation ? operation->member->comm : NULL);
    if (operation) {
        draft.finding.number = operation->number;
        draft.finding.has_number = true;
    }
    draft.finding.first_ns = blocked ? blocked->thread->enter_site.time_ns
                                     : graph->now_ns - graph->patience_ns;
    draft.finding.last_ns = graph->now_ns;
    add_places(&draft, graph);
    stalled_describe(&draft, operation);
    findings_report(analyzer, &draft, NULL);
}
