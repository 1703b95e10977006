/* hang_stalled.c: reports a job in which nothing has happened for long and that no other finding
 * explains: who waits in what, and where everyone is. And a job that waits for something before its
 * first NCCL call: a rendezvous, a file, a download. */
#include "analyzer/checks/hang/hang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/hang/dormant.h"
#include "analyzer/hang/where.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/model/progress.h"
#include "lib/trace/names.h"

enum { RANKS_BYTES = 128, NAME_BYTES = 512 };

/* A mismatch, a hang, or what is certain to be wrong may be the cause. */
static bool is_explained(const struct analyzer *analyzer)
{
    const struct reported *reported;
    for (uint32_t i = 0; (reported = hang_next_open(analyzer, &i));) {
        enum family family = code_family(reported->check->code);
        bool may_hang = family == FAMILY_MATCH || reported->finding.certainty == CERTAIN;
        if (family == FAMILY_HANG || (may_hang && reported->finding.severity == SEVERITY_ERROR))
            return true;
    }
    return false;
}

static uint64_t last_sign_of_life(const struct process *process)
{
    uint64_t last_ns = process->last_ns > process->gpu_ns ? process->last_ns : process->gpu_ns;
    if (process->lost.control && last_ns < process->lost.until_ns)
        last_ns = process->lost.until_ns; /* it did something, and nothing is lost since */
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
    uint64_t patience_ns = graph->quitter ? wait_ending_patience_ns(analyzer) : graph->patience_ns;
    uint32_t members = 0;
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *process = analyzer->process[i];
        if (!process || (process->ended && process->end_class != END_CLASS_PENDING))
            continue;
        if (process->ended || process->info.lacks ||
            (process != graph->quitter &&
             (process_known_until(process) < last_sign_of_life(process) + patience_ns ||
              graph->now_ns < last_sign_of_life(process) + patience_ns)))
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

static bool is_given_up(const struct wait_graph *graph, const struct blocked *blocked)
{
    return blocked->thread->process == graph->quitter &&
           graph->now_ns >=
               blocked->thread->enter_site.time_ns + wait_ending_patience_ns(graph->analyzer);
}

/* Somebody waits for NCCL, and where a process gives up, that one. */
static const struct blocked *find_waiting(const struct wait_graph *graph)
{
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        const struct blocked *blocked = &graph->blocked[i];
        if ((!graph->quitter || is_given_up(graph, blocked)) &&
            (blocked->waits || blocked->ops || is_in_nccl_call(blocked->thread)))
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

/* The NCCL call that the waiting thread is in, or waits for; 0: none is known. */
static uint16_t awaited_api(const struct blocked *blocked)
{
    if (!blocked)
        return 0;
    if (is_in_nccl_call(blocked->thread))
        return blocked->thread->enter.api;
    for (uint32_t i = 0; i < blocked->ops; i++)
        if (blocked->op[i]->pending)
            return blocked->op[i]->pending->signature.api;
    return 0;
}

/* What of the job does not end. */
struct stall {
    const struct pending *operation; /* that everyone has called; NULL: none is known */
    int64_t messages;                /* of the waiting thread, which both sides have called */
    unsigned setup;    /* the call of a set-up in which every rank is, API_NONE: none */
    int64_t elsewhere; /* operations of other communicators that are not done either */
    bool has_started;  /* the streams of all ranks have reached the operation */
};

struct stall_visit {
    struct process *process;
    struct stall *stall;
};

static int count_in_flight(void *context, const struct pending *pending)
{
    struct stall_visit *visit = context;
    struct stall *stall = visit->stall;
    if (pending->member->comm != stall->operation->member->comm)
        stall->elsewhere++;
    else if (pending->number == stall->operation->number && !pending->channel)
        stall->has_started &= progress_has_started(visit->process, pending);
    return 0;
}

static void find_in_flight(struct stall *stall, const struct wait_graph *graph)
{
    stall->has_started = true;
    for (int i = 0; i < graph->analyzer->processes; i++) {
        struct stall_visit visit = {graph->analyzer->process[i], stall};
        if (!visit.process)
            continue;
        progress_visit_first(visit.process, 1, count_in_flight, &visit);
        for (const struct thread *thread = visit.process->threads; thread; thread = thread->hh.next)
            stall->has_started &= !is_in_nccl_call(thread); /* which may not have launched it */
    }
}

/* The call of a communicator's set-up that the process is in; API_NONE: in none. */
static unsigned find_setup_call(const struct process *process)
{
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next)
        if (api_class_of(thread->enter.api) == CLASS_COMM)
            return thread->enter.api;
    return API_NONE;
}

static unsigned find_common_setup(const struct wait_graph *graph)
{
    unsigned common = API_NONE;
    for (int i = 0; i < graph->analyzer->processes; i++) {
        const struct process *process = graph->analyzer->process[i];
        unsigned setup = process ? find_setup_call(process) : common;
        if (process && (!setup || (common && setup != common)))
            return API_NONE;
        common = setup;
    }
    return common;
}

struct message_count {
    uint64_t group;
    int64_t messages;
};

static void count_group_message(void *context, const struct pending *pending)
{
    struct message_count *count = context;
    count->messages += pending->channel && pending->group == count->group;
}

/* Sends and receives of the group of the one that the thread waits for; 0: it waits for none. */
static int64_t count_messages(const struct blocked *blocked)
{
    const struct pending *first = NULL;
    for (uint32_t i = 0; blocked && i < blocked->ops && !first; i++)
        if (blocked->op[i]->pending && blocked->op[i]->pending->channel)
            first = blocked->op[i]->pending;
    if (!first)
        return 0;
    struct message_count count = {.group = first->group};
    progress_visit_all(blocked->thread->process, count_group_message, &count);
    return count.messages;
}

static struct stall find_stall(const struct wait_graph *graph, const struct blocked *blocked)
{
    struct stall stall = {.operation = awaited_operation(blocked),
                          .messages = count_messages(blocked)};
    if (stall.operation)
        find_in_flight(&stall, graph);
    else
        stall.setup = find_common_setup(graph);
    return stall;
}

static void stalled_describe(struct draft *draft, const struct stall *stall)
{
    const struct pending *operation = stall->operation;
    struct values values = {.value = {stall->messages, stall->elsewhere}};
    enum headline headline = HEADLINE_NO_PROGRESS;
    bool is_first = operation && operation->number == 0;
    if (operation) {
        headline = HEADLINE_STALLED;
        values.call[0] = signature_call(&operation->signature);
        values.flag[0] = stall->has_started;
        values.flag[1] = is_first;
    } else if (stall->setup) {
        headline = HEADLINE_STALLED_SETUP;
        values.call[0].api = stall->setup;
    } else if (stall->messages) {
        headline = HEADLINE_STALLED_MESSAGES;
    }
    for (int i = 0; i < draft->finding.sides; i++) { /* whether its words have a verb */
        const struct finding_side *side = &draft->finding.side[i];
        values.each[i] = hang_side_ended(side) || side->act.did == DID_ENDED;
    }
    draft_headline(draft, headline,
                   is_first || stall->setup ? ADVICE_STALLED_FIRST : ADVICE_STALLED, &values);
}

void hang_report_stalled(struct analyzer *analyzer, const struct wait_graph *graph)
{
    if (graph->moment == MOMENT_FINAL || !all_are_silent(graph) || hang_lacks_trace(analyzer) ||
        is_explained(analyzer))
        return;
    const struct blocked *blocked = find_waiting(graph);
    /* Ranks that only run are slow or stuck: long silence shows it, the end of a trace does not. */
    bool was_silent = graph->moment == MOMENT_ENDING && analyzer->ending_silence_ns;
    if (!blocked && !was_silent)
        return; /* nobody waits: the program may compute on the host */
    const struct stall stall = find_stall(graph, blocked);
    const struct pending *operation = stall.operation;
    struct draft draft =
        draft_new(&check_stuck_operation, POSSIBLE, operation ? operation->member->comm : NULL);
    if (operation) {
        draft.finding.number = operation->number;
        draft.finding.has_number = true;
    }
    draft.finding.first_ns = blocked ? blocked->thread->enter_site.time_ns
                                     : graph->now_ns - graph->patience_ns;
    draft.finding.last_ns = graph->now_ns;
    draft.awaited_api = awaited_api(blocked);
    add_places(&draft, graph);
    stalled_describe(&draft, &stall);
    findings_report(analyzer, &draft, NULL);
}

/* The ranks at one line, or the processes whose rank no variable says. */
struct place_group {
    const char *place;
    struct rankset ranks, pids;
    const struct process *example;
};

static bool is_uncalled(const struct analyzer *analyzer)
{
    for (int i = 0; i < analyzer->processes; i++)
        if (analyzer->process[i] &&
            (analyzer->process[i]->last_ns || analyzer->process[i]->member_count))
            return false;
    return analyzer->dormants.count > 0;
}

/* On other hosts, which may have called NCCL. */
static bool has_ranks_elsewhere(const struct analyzer *analyzer)
{
    struct dormant_place dormant;
    int ranks = 0, world_size = 0;
    for (uint32_t i = 0; i < analyzer->dormants.count; i++) {
        if (!dormant_find_place(analyzer, i, &dormant))
            continue;
        ranks += dormant.rank >= 0;
        if (dormant.rank >= 0 && world_size < dormant.reporter->info.world_size)
            world_size = dormant.reporter->info.world_size;
    }
    return world_size > ranks;
}

/* What finds no room is in the last group, whose place is then left out. */
static struct place_group *place_group_of(struct place_group *group, int *groups,
                                          const struct dormant_place *dormant)
{
    for (int i = 0; i < *groups; i++)
        if (!strcmp(group[i].place, dormant->place) &&
            (dormant->rank >= 0) == (rankset_count(&group[i].ranks) > 0))
            return &group[i];
    if (*groups == FINDING_SIDES_MAX) {
        group[*groups - 1].place = "";
        return &group[*groups - 1];
    }
    group[*groups] = (struct place_group){.place = dormant->place, .example = dormant->reporter};
    return &group[(*groups)++];
}

static bool find_place_groups(const struct analyzer *analyzer, struct place_group *group,
                              int *groups, struct draft *draft)
{
    struct dormant_place dormant;
    for (uint32_t i = 0; i < analyzer->dormants.count; i++) {
        if (!dormant_find_place(analyzer, i, &dormant))
            continue;
        struct place_group *to = place_group_of(group, groups, &dormant);
        struct rankset *set = dormant.rank >= 0 ? &to->ranks : &to->pids;
        if (rankset_add(set, dormant.rank >= 0 ? dormant.rank : dormant.pid))
            return false;
        draft_cover(draft, dormant.reporter);
    }
    return true;
}

/* Adds a side; returns what the headline says of it, "ranks 0-2 are in load() at train.py:12",
 * which the caller frees. NULL if there was no room. */
static char *add_place_group(struct draft *draft, const struct place_group *group)
{
    bool has_ranks = rankset_count(&group->ranks) > 0;
    const struct rankset *set = has_ranks ? &group->ranks : &group->pids;
    const char *const noun[] = {has_ranks ? "ranks" : "processes", has_ranks ? "rank" : "process"};
    char ranks[RANKS_BYTES], name[NAME_BYTES];
    bool one = rankset_count(set) == 1;
    rankset_brief(set, ranks, sizeof ranks);
    bool names_processes = !has_ranks && *group->place;
    snprintf(name, sizeof name, names_processes ? "%s (%s %s)" : "%s", group->place, noun[one],
             ranks);
    const struct act act = {.did = DID_UNCALLED, .name = name};
    struct finding_side *side = draft_side(draft, &act, NULL);
    if (!side)
        return NULL;
    side->process = group->example->index;
    draft->failed |= rankset_unite(&side->ranks, &group->ranks) != 0;
    struct text text = {0};
    text_add(&text, "%s %s", noun[one], ranks);
    if (*group->place)
        text_add(&text, " %s in %s", one ? "is" : "are", group->place);
    return text_take(&text);
}

/* The job was to be ended, and called NCCL after all. */
static void withdraw_uncalled(struct analyzer *analyzer)
{
    const struct reported *reported;
    for (uint32_t i = 0; (reported = hang_next_open(analyzer, &i));)
        if (reported->finding.sides && reported->finding.side[0].act.did == DID_UNCALLED)
            findings_resolve(analyzer, reported->finding.id, "NCCL was called after all");
}

void hang_report_uncalled(struct analyzer *analyzer, const struct wait_graph *graph)
{
    struct place_group group[FINDING_SIDES_MAX] = {0};
    int groups = 0;
    if (!is_uncalled(analyzer))
        withdraw_uncalled(analyzer);
    if (graph->moment != MOMENT_ENDING || !analyzer->ending_silence_ns || !is_uncalled(analyzer))
        return;
    struct draft draft = draft_new(&check_stuck_operation, POSSIBLE, NULL);
    struct values values = {.flag = {has_ranks_elsewhere(analyzer)}};
    char *said[FINDING_SIDES_MAX] = {NULL};
    draft.failed = !find_place_groups(analyzer, group, &groups, &draft) || draft.failed;
    draft.finding.first_ns = graph->now_ns - analyzer->ending_silence_ns;
    draft.finding.last_ns = graph->now_ns;
    for (int i = 0; i < groups; i++) {
        values.said[i] = said[i] = add_place_group(&draft, &group[i]);
        rankset_free(&group[i].ranks);
        rankset_free(&group[i].pids);
    }
    draft_headline(&draft, HEADLINE_UNCALLED, ADVICE_UNCALLED, &values);
    for (int i = 0; i < groups; i++)
        free(said[i]);
    findings_report(analyzer, &draft, NULL);
}
