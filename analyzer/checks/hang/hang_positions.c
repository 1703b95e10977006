/* hang_positions.c: the rules of hangs on positions instead of calls: ranks on the same lines
 * are one side, those in a collective or in a wait for the GPU wait, the others are
 * missing.
 *
 * Stacks do not show which communicator a rank is in, nor how many collectives it has made, so all
 * is possible. A rank that moves shows that the job gets on, or is slow. */
#include "analyzer/checks/hang/hang.h"

#include "analyzer/findings.h"
#include "analyzer/hang/positions.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"

struct position_rule {
    enum place_kind waiting; /* of the first group */
    bool (*applies)(const struct analyzer *analyzer, const struct position_groups *groups);
    const struct check *check; /* NULL: no finding */
    enum headline headline;
    enum advice advice;
};

static const struct position *group_position(const struct position_group *group)
{
    return group->example->slot.position;
}

static uint64_t lasts_ns(const struct position *position)
{
    return (uint64_t)position->lasts_s * 1000000000;
}

/* So long a rank is silent before it is said to hang. */
static bool lasts_long(const struct analyzer *analyzer, const struct position_groups *groups)
{
    return lasts_ns(group_position(groups->group)) >= analyzer->options.hang_after_ns;
}

static bool some_stand(const struct position_groups *groups, enum place_kind place)
{
    for (int i = 0; i < groups->count; i++)
        if (group_position(&groups->group[i])->place == place)
            return true;
    return false;
}

static bool some_are_gone(const struct analyzer *analyzer, const struct position_groups *groups)
{
    (void)analyzer;
    return some_stand(groups, PLACE_GONE);
}

static bool some_are_stopped(const struct analyzer *analyzer, const struct position_groups *groups)
{
    (void)analyzer;
    return some_stand(groups, PLACE_STOPPED);
}

static bool are_all_here(const struct analyzer *analyzer, const struct position_groups *groups)
{
    (void)analyzer;
    return groups->count == 1;
}

static bool are_in_different_operations(const struct analyzer *analyzer,
                                        const struct position_groups *groups)
{
    (void)analyzer;
    bool differ = false;
    for (int i = 0; i < groups->count; i++) {
        if (group_position(&groups->group[i])->place != PLACE_OPERATION)
            return false;
        differ |= group_position(&groups->group[i])->text_id !=
                  group_position(groups->group)->text_id;
    }
    return differ;
}

/* All who are awaited ran or did I/O, and not yet for long: they are late rather than missing. */
static bool others_work(const struct analyzer *analyzer, const struct position_groups *groups)
{
    int working = 0;
    for (int i = 0; i < groups->count; i++) {
        if (position_waits(group_position(&groups->group[i])))
            continue;
        if (!groups->group[i].all_work)
            return false;
        working++;
    }
    return working && !lasts_long(analyzer, groups);
}

static bool are_all_here_long(const struct analyzer *analyzer, const struct position_groups *groups)
{
    return are_all_here(analyzer, groups) && lasts_long(analyzer, groups);
}

/* All in one wait for the GPU may wait for work that takes long, and all in the set-up for a host
 * that is slow. */
static const struct position_rule position_rules[] = {
    {PLACE_SETUP, are_all_here, NULL, HEADLINE_NONE, ADVICE_NONE},
    {PLACE_SETUP, others_work, &check_late_rank, HEADLINE_POSITIONS_MISSING, ADVICE_WORKS},
    {PLACE_SETUP, NULL, &check_stuck_setup, HEADLINE_POSITIONS_MISSING, ADVICE_SETUP_INIT},
    {PLACE_WAIT, are_all_here_long, &check_stuck_operation, HEADLINE_POSITIONS_STUCK,
     ADVICE_STALLED},
    {PLACE_WAIT, are_all_here, NULL, HEADLINE_NONE, ADVICE_NONE},
    {PLACE_WAIT, some_are_gone, &check_exited_rank, HEADLINE_POSITIONS_MISSING, ADVICE_EXITED},
    {PLACE_WAIT, some_are_stopped, &check_missing_rank, HEADLINE_POSITIONS_MISSING,
     ADVICE_STOPPED_PROCESS},
    {PLACE_WAIT, others_work, &check_late_rank, HEADLINE_POSITIONS_MISSING, ADVICE_WORKS},
    {PLACE_WAIT, NULL, &check_missing_rank, HEADLINE_POSITIONS_MISSING, ADVICE_STANDS},
    {PLACE_OPERATION, are_all_here, &check_stuck_operation, HEADLINE_POSITIONS_STUCK,
     ADVICE_STALLED},
    {PLACE_OPERATION, are_in_different_operations, &check_different_operations,
     HEADLINE_POSITIONS_DIFFER, ADVICE_SAME_OPERATIONS},
    {PLACE_OPERATION, some_are_gone, &check_exited_rank, HEADLINE_POSITIONS_MISSING, ADVICE_EXITED},
    {PLACE_OPERATION, some_are_stopped, &check_missing_rank, HEADLINE_POSITIONS_MISSING,
     ADVICE_STOPPED_PROCESS},
    {PLACE_OPERATION, others_work, &check_late_rank, HEADLINE_POSITIONS_MISSING, ADVICE_WORKS},
    {PLACE_OPERATION, NULL, &check_missing_rank, HEADLINE_POSITIONS_MISSING, ADVICE_STANDS},
};

static const struct position_rule *find_position_rule(const struct analyzer *analyzer,
                                                      const struct position_groups *groups)
{
    for (size_t i = 0; i < sizeof position_rules / sizeof *position_rules; i++) {
        const struct position_rule *rule = &position_rules[i];
        if (rule->waiting == group_position(groups->group)->place &&
            (!rule->applies || rule->applies(analyzer, groups)))
            return rule;
    }
    return NULL;
}

static struct act position_act(const struct position_group *group)
{
    const struct position *position = group_position(group);
    if (position->place == PLACE_GONE)
        return (struct act){.did = DID_GONE};
    if (position->place == PLACE_STOPPED)
        return (struct act){.did = DID_STOPPED, .number = group->example->info.pid};
    if (!*position->text)
        return (struct act){.did = DID_RUNNING};
    return (struct act){.did = DID_STANDS_IN, .name = position->text};
}

/* What finds no room is in the last side. */
static void add_position_side(struct draft *draft, const struct position_group *group, int number)
{
    const struct act act = position_act(group);
    struct finding_side *side = draft_side(draft, &act, &group_position(group)->site);
    if (!side)
        side = &draft->finding.side[number - 1];
    draft->failed |= rankset_unite(&side->ranks, &group->ranks) != 0;
}

static const struct position_group *group_of_rank(const struct position_groups *groups, int rank)
{
    for (int i = 0; i < groups->count; i++)
        if (rankset_has(&groups->group[i].ranks, rank))
            return &groups->group[i];
    return NULL;
}

/* Those that have issued fewer collectives of it than the others are the ranks that do not wait. */
static bool counts_agree(const struct comm *comm, const struct position_groups *groups,
                         const struct standing_apart *apart)
{
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct position_group *group =
            group_of_rank(groups, member_shown_rank(comm->member[i]));
        if (!group ||
            position_waits(group_position(group)) != (comm->member[i]->next == apart->most))
            return false;
    }
    return true;
}

/* The communicator in which RAS's counts, which show no wait, differ as the stacks do. */
static const struct comm *find_counts(const struct analyzer *analyzer,
                                      const struct position_groups *groups,
                                      struct standing_apart *apart)
{
    for (const struct comm *comm = analyzer->first_comm; comm; comm = comm->next)
        if (comm_stands_apart(comm, LACKS_STATE, apart) && counts_agree(comm, groups, apart))
            return comm;
    return NULL;
}

static void report_positions(struct analyzer *analyzer, const struct position_groups *groups,
                             const struct position_rule *rule)
{
    struct standing_apart apart;
    const struct comm *comm =
        rule->check == &check_missing_rank ? find_counts(analyzer, groups, &apart) : NULL;
    struct draft draft = draft_new(rule->check, comm ? CERTAIN : POSSIBLE, comm);
    draft.finding.has_number = comm;
    draft.finding.number = comm ? apart.least : 0;
    const struct position *first = group_position(groups->group);
    struct values values = {.value = {first->lasts_s}};
    for (int i = 0; i < groups->count; i++)
        add_position_side(&draft, &groups->group[i], FINDING_SIDES_MAX);
    for (int i = 0; i < draft.finding.sides; i++) /* whether its words have a verb */
        values.each[i] = draft.finding.side[i].act.did == DID_GONE;
    for (int i = 0; i < analyzer->processes; i++)
        if (analyzer->process[i] && analyzer->process[i]->slot.position)
            draft_cover(&draft, analyzer->process[i]);
    draft.finding.first_ns = first->site.time_ns - lasts_ns(first);
    draft.finding.last_ns = first->site.time_ns;
    draft_headline(&draft, rule->headline, rule->advice, &values);
    findings_report(analyzer, &draft, NULL);
}

/* --- beside a source that counts --- */

/* The open error that a dump or a log shows of these ranks' operations; NULL: there is none. */
static struct reported *find_counted(struct analyzer *analyzer,
                                     const struct position_groups *groups)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        struct reported *reported = &analyzer->reported[i];
        const struct finding *finding = &reported->finding;
        if (reported->suppressed || finding->state != FINDING_OPEN || !finding->has_number ||
            finding->severity != SEVERITY_ERROR || code_family(finding->code) > FAMILY_HANG)
            continue;
        for (int k = 0; k < finding->sides; k++)
            if (group_of_rank(groups, rankset_next(&finding->side[k].ranks, 0)))
                return reported;
    }
    return NULL;
}

/* The ranks of the first side wait, and all others are elsewhere, where they do not work. */
static bool is_confirmed(const struct finding *finding, const struct position_groups *groups)
{
    for (int i = 0; i < finding->sides; i++)
        for (int rank = -1; (rank = rankset_next(&finding->side[i].ranks, rank + 1)) >= 0;) {
            const struct position_group *group = group_of_rank(groups, rank);
            if (!group || position_waits(group_position(group)) != (i == 0) ||
                (i > 0 && group->all_work))
                return false;
        }
    return finding->sides > 1;
}

/* Counts show what is missing, stacks where the ranks are now, and that they stay there: together
 * they are certain. The stack of who is missing says more than that of its last call. */
static void add_positions(struct analyzer *analyzer, const struct reported *counted,
                          const struct position_groups *groups)
{
    struct draft draft = {.check = counted->check, .is_wait = counted->is_wait};
    draft.failed = finding_copy(&draft.finding, &counted->finding) ||
                   rankset_copy(&draft.processes, &counted->processes);
    for (int i = 0; i < draft.finding.sides && !draft.failed; i++) {
        struct finding_side *side = &draft.finding.side[i];
        const struct position_group *group = group_of_rank(groups, rankset_next(&side->ranks, 0));
        if (!group)
            continue;
        const struct act now = position_act(group);
        if (i > 0 && group_position(group)->site.stack)
            draft_side_at(&draft, side, &group_position(group)->site);
        draft_side_now(&draft, side, &now, NULL);
    }
    if (!draft.failed && is_confirmed(&draft.finding, groups))
        draft.finding.certainty = CERTAIN;
    findings_replace(analyzer, counted->finding.id, &draft);
}

void positions_report(struct analyzer *analyzer)
{
    struct position_groups groups;
    if (positions_group(analyzer, &groups)) {
        analyzer->failed = true;
        return;
    }
    bool stays = groups.ranks > 1 && !groups.some_move;
    const struct reported *counted = stays ? find_counted(analyzer, &groups) : NULL;
    const struct position_rule *rule = stays ? find_position_rule(analyzer, &groups) : NULL;
    if (counted)
        add_positions(analyzer, counted, &groups);
    else if (rule && rule->check)
        report_positions(analyzer, &groups, rule);
    positions_free(&groups);
}
