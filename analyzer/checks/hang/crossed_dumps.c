/* crossed_dumps.c: operations of two communicators that the ranks issued in different orders, and
 * that none has finished, as imported dumps show them (DC202).
 *
 * Nobody is missing, so that no wait leads to another rank: only the order says why nothing is
 * finished. Dumps do not show streams, so it is possible. */
#include "analyzer/checks/hang/crossed_dumps.h"

#include "analyzer/checks/hang/unfinished.h"
#include "analyzer/findings.h"
#include "analyzer/loop/loop_divergence.h"
#include "analyzer/model/process.h"

enum { COMPARED_MAX = 64, CALL_BYTES = 256, RANKS_BYTES = 128 };

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

static void say_issued(struct text *what, const struct pending *call)
{
    char text[CALL_BYTES], name[COMM_TITLE_BYTES];
    text_add(what, "%s #%llu of %s", signature_text(&call->signature, text, sizeof text),
             (unsigned long long)call->number, comm_title(call->member->comm, name));
}

static bool report_pair(struct analyzer *analyzer, const struct standing_comm *a,
                        const struct standing_comm *b)
{
    struct draft draft = draft_new(&check_wait_cycle, POSSIBLE, a->comm);
    const struct pending *call_a = add_issuers(&draft, a, b);
    const struct pending *call_b = call_a ? add_issuers(&draft, b, a) : NULL;
    char ranks[RANKS_BYTES];
    struct text what = {0};
    if (!call_b) {
        draft_drop(&draft);
        return false;
    }
    draft.finding.number = call_a->number;
    draft.finding.has_number = true;
    text_add(&what, "%s issued ", draft_ranks_text(&draft, 0, ranks, sizeof ranks));
    say_issued(&what, call_a);
    text_add(&what, " before ");
    say_issued(&what, call_b);
    text_add(&what, ", and %s the other way round: both wait, and neither is finished",
             draft_ranks_text(&draft, 1, ranks, sizeof ranks));
    draft_say(&draft, &what,
              "Issue the operations of all communicators in one order on every rank, from one "
              "thread.");
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
