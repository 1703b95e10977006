/* tally.c: counts what each member reduces in an iteration. */
#include "analyzer/checks/training/tally.h"

#include "analyzer/checks/training/loop_report.h"
#include "analyzer/states.h"
#include "lib/trace/names.h"

static void close_set(struct tally *tally)
{
    if (!tally->sets)
        return;
    if (tally->sets == 1)
        tally->first_set = tally->set;
    else if (tally->set != tally->first_set)
        tally->other_sets++;
}

void tally_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    const struct record *record = &operation->record;
    const struct loop_place *loop = &operation->loop;
    if (!loop->iteration || !loop_is_reduction(record->api))
        return;
    struct tally *tally =
        state_get(analyzer, &check_skipped_step, OWNER_MEMBER, &operation->member->states);
    if (!tally)
        return;
    if (tally->iteration != loop->iteration) {
        uint32_t waits = tally->waits, every = tally->every;
        *tally = (struct tally){
            .iteration = loop->iteration, .owner = loop->owner, .waits = waits, .every = every};
    }
    if (!tally->sets || tally->micro != loop->micro) {
        close_set(tally);
        tally->sets++;
        tally->set = 0;
        tally->micro = loop->micro;
    }
    tally->set += signature_hash(&operation->signature);
    tally->reductions++;
    tally->site = operation->site;
    tally->overlapped += loop->in_backward;
    tally->bytes += record->op.count * datatype_bytes(record->op.datatype);
}

struct tally *tally_finished(struct analyzer *analyzer, const struct thread *thread,
                             struct member *member)
{
    struct tally *tally = state_find(analyzer, &check_skipped_step, OWNER_MEMBER, member->states);
    if (!tally || thread->process->lost.bulk || tally->owner != thread ||
        tally->iteration != thread->loop.ordinal)
        return NULL;
    if (!tally->closed)
        close_set(tally);
    tally->closed = true;
    return tally;
}

uint32_t tally_steps(const struct loop *loop)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < loop->steps_count; i++)
        count += loop->steps[i].count;
    return count;
}

void tally_report(struct analyzer *analyzer, const struct check *check, enum did did,
                  const struct member *member, const struct tally *tally, enum headline headline,
                  enum advice advice, const struct values *values)
{
    struct draft draft = draft_new(check, POSSIBLE, member->comm);
    draft_rank(&draft, draft_side(&draft, &(struct act){.did = did}, &tally->site), member);
    draft.merges_ranks = true;
    draft.finding.first_ns = draft.finding.last_ns = tally->site.time_ns;
    draft_headline(&draft, headline, advice, values);
    findings_report(analyzer, &draft, NULL);
}
