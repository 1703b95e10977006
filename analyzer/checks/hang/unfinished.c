/* unfinished.c: the first operation of a communicator that some dump shows as not done; and
 * operations of two communicators that the ranks issued in different orders, and that none has
 * finished (DC202).
 *
 * There nobody is missing, so that no wait leads to another rank: only the order says why nothing
 * is finished. Dumps do not show streams, so it is possible. */
#include "analyzer/checks/hang/hang.h"

#include "analyzer/findings.h"
#include "analyzer/loop/loop_divergence.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/model/progress.h"
#include "lib/trace/lacks.h"

bool unfinished_is_known(const struct member *member)
{
    return member->process->info.lacks && !(member->process->info.lacks & LACKS_STATE) &&
           member->has_progress && member->next;
}

bool unfinished_find(const struct comm *comm, struct unfinished *found)
{
    uint64_t least = UINT64_MAX, most = 0, issued = UINT64_MAX;
    bool all_known = comm->nranks > 0 && comm->members >= (uint32_t)comm->nranks;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *member = comm->member[i];
        if (!unfinished_is_known(member)) {
            all_known = false;
            continue;
        }
        if (member->done > most)
            most = member->done;
        if (member->next < issued)
            issued = member->next;
        if (member->done < member->next && member->done < least)
            least = member->done;
    }
    *found = (struct unfinished){least, least < most, all_known && issued > least};
    return least != UINT64_MAX;
}

struct sought {
    const struct member *member;
    uint64_t number;
    const struct pending *found;
};

static int compare_sought(void *context, const struct pending *pending)
{
    struct sought *sought = context;
    if (pending->member != sought->member || pending->number < sought->number || pending->channel)
        return 0;
    if (!sought->found || pending->number < sought->found->number)
        sought->found = pending;
    return pending->number == sought->number;
}

const struct pending *unfinished_call(const struct member *member, uint64_t number)
{
    struct sought sought = {.member = member, .number = number};
    progress_visit_first(member->process, UINT32_MAX, compare_sought, &sought);
    return sought.found;
}

enum { COMPARED_MAX = 64 };

struct standing_comm {
    const struct comm *comm;
    uint64_t number; /* of its operation that is not finished */
};

static const struct pending *standing_call(const struct standing_comm *standing,
                                           const struct process *process)
{
    for (const struct member *member = process->members; member; member = member->process_next)
        if (member->comm == standing->comm)
            return unfinished_call(member, standing->number);
    return NULL;
}

/* One side for the ranks that issued the operation of `first` before the other. Returns the first
 * of these calls, NULL if there are none. */
static const struct pending *add_issuers(struct draft *draft, const struct standing_comm *first,
                                         const struct standing_comm *second)
{
    const struct pending *shown = NULL;
    struct finding_side *side = NULL;
    for (uint32_t i = 0; i < first->comm->members; i++) {
        struct member *member = first->comm->member[i];
        const struct pending *before = standing_call(first, member->process);
        const struct pending *after = standing_call(second, member->process);
        if (!before || !after || before->site.time_ns >= after->site.time_ns)
            continue;
        if (!shown) {
            shown = before;
            side = draft_side_signature(draft, &before->signature, &before->site);
        }
        draft_rank(draft, side, member);
        if (draft->finding.last_ns < before->site.time_ns)
            draft->finding.last_ns = before->site.time_ns;
    }
    if (shown && (!draft->finding.first_ns || shown->site.time_ns < draft->finding.first_ns))
        draft->finding.first_ns = shown->site.time_ns;
    return shown;
}

static bool report_pair(struct analyzer *analyzer, const struct standing_comm *a,
                        const struct standing_comm *b)
{
    struct draft draft = draft_new(&check_wait_cycle, POSSIBLE, a->comm);
    const struct pending *call_a = add_issuers(&draft, a, b);
    const struct pending *call_b = call_a ? add_issuers(&draft, b, a) : NULL;
    char title[COMM_TITLE_BYTES];
    if (!call_b) {
        draft_drop(&draft);
        return false;
    }
    draft.finding.number = call_a->number;
    draft.finding.has_number = true;
    draft_headline(
        &draft, HEADLINE_CROSSED_DUMPS, ADVICE_ONE_ORDER,
        &(struct values){.name = {comm_title(b->comm, title)}, .value = {call_b->number}});
    findings_report(analyzer, &draft, NULL);
    return true;
}

bool crossed_dumps_report(struct analyzer *analyzer)
{
    struct standing_comm standing[COMPARED_MAX];
    int count = 0;
    for (const struct comm *comm = analyzer->first_comm; comm && count < COMPARED_MAX;
         comm = comm->next) {
        struct unfinished found;
        if (unfinished_find(comm, &found) && !found.some_done && found.all_issued)
            standing[count++] = (struct standing_comm){comm, found.number};
    }
    for (int i = 0; i < count; i++)
        for (int k = i + 1; k < count; k++)
            if (report_pair(analyzer, &standing[i], &standing[k]))
                return true;
    return false;
}
