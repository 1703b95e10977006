/* uncalled.c: reports a job that waits for something before its first NCCL call: a rendezvous, a
 * file, a download. */
#include "analyzer/checks/hang/uncalled.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/hang/dormant.h"
#include "analyzer/model/process.h"

enum { RANKS_BYTES = 128, NAME_BYTES = 512 };

/* The ranks at one place, or the processes of which no variable says which rank they are. */
struct place_group {
    const char *place;
    struct rankset ranks, pids;
    const struct process *example;
};

static const char uncalled_todo[] =
    "Look at what the ranks wait for before NCCL: a rank that has not started, a firewall between "
    "the hosts, or an address, a port or a number of ranks that is not the same for all "
    "(MASTER_ADDR, MASTER_PORT, WORLD_SIZE, --rdzv-endpoint). If the program only prepares for so "
    "long, raise --timeout.";

static bool is_uncalled(const struct analyzer *analyzer)
{
    for (int i = 0; i < analyzer->processes; i++)
        if (analyzer->process[i] &&
            (analyzer->process[i]->last_ns || analyzer->process[i]->member_count))
            return false;
    return analyzer->dormants > 0;
}

/* On other hosts, which may have called NCCL. */
static bool has_ranks_elsewhere(const struct analyzer *analyzer)
{
    struct dormant_place dormant;
    int ranks = 0, world_size = 0;
    for (uint32_t i = 0; i < analyzer->dormants; i++) {
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
    for (uint32_t i = 0; i < analyzer->dormants; i++) {
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

/* "; ranks 0-2 are in load() at train.py:12" */
static void add_place_group(struct draft *draft, const struct place_group *group, struct text *what)
{
    bool has_ranks = rankset_count(&group->ranks) > 0;
    const struct rankset *set = has_ranks ? &group->ranks : &group->pids;
    const char *const noun[] = {has_ranks ? "ranks" : "processes", has_ranks ? "rank" : "process"};
    char ranks[RANKS_BYTES], name[NAME_BYTES];
    bool one = rankset_count(set) == 1;
    rankset_text(set, ranks, sizeof ranks);
    text_add(what, "%s%s %s", draft->finding.sides ? "; " : ": ", noun[one], ranks);
    if (*group->place)
        text_add(what, " %s in %s", one ? "is" : "are", group->place);
    bool names_processes = !has_ranks && *group->place;
    snprintf(name, sizeof name, names_processes ? "%s (%s %s)" : "%s", group->place, noun[one],
             ranks);
    const struct act act = {.did = DID_UNCALLED, .name = name};
    struct finding_side *side = draft_side(draft, &act, NULL);
    if (!side)
        return;
    side->process = group->example->index;
    if (rankset_unite(&side->ranks, &group->ranks))
        draft->failed = true;
}

void hang_report_uncalled(struct analyzer *analyzer, const struct wait_graph *graph)
{
    struct place_group group[FINDING_SIDES_MAX] = {0};
    int groups = 0;
    if (graph->moment != MOMENT_ENDING || !analyzer->ending_silence_ns || !is_uncalled(analyzer))
        return;
    struct draft draft = draft_new(&check_stuck_operation, POSSIBLE, NULL);
    struct text what = {0};
    draft.failed = !find_place_groups(analyzer, group, &groups, &draft) || draft.failed;
    draft.finding.first_ns = graph->now_ns - analyzer->ending_silence_ns;
    draft.finding.last_ns = graph->now_ns;
    text_add(&what, "no rank of %s has called NCCL",
             has_ranks_elsewhere(analyzer) ? "this host" : "the job");
    for (int i = 0; i < groups; i++) {
        add_place_group(&draft, &group[i], &what);
        rankset_free(&group[i].ranks);
        rankset_free(&group[i].pids);
    }
    draft_say(&draft, &what, uncalled_todo);
    findings_report(analyzer, &draft, NULL);
}
