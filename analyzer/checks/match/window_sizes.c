/* window_sizes.c: compares the size of a window with that of the first rank that made its own. */
#include "analyzer/checks/match/window_sizes.h"

#include "analyzer/findings.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/states.h"

static struct window_sizes *sizes_find(struct analyzer *analyzer, const struct member *member)
{
    return state_find(analyzer, &check_different_setup, OWNER_MEMBER, member->states);
}

/* Another member whose window of this number is still kept. */
static const struct member *find_partner(struct analyzer *analyzer, const struct member *member,
                                         uint32_t number)
{
    for (uint32_t i = 0; i < member->comm->members; i++) {
        const struct member *other = member->comm->member[i];
        if (other != member && other->made[WAIT_WINDOW] > number &&
            other->made[WAIT_WINDOW] <= number + WINDOWS_KEPT && sizes_find(analyzer, other))
            return other;
    }
    return NULL;
}

static void add_size_side(struct draft *draft, const struct member *member, uint64_t bytes,
                          const struct site *site)
{
    const struct act act = {.did = DID_REGISTERED_WINDOW,
                            .call = call_of_api(API_ncclCommWindowRegister),
                            .number = bytes};
    draft_rank(draft, draft_side(draft, &act, site), member);
}

static void report_sizes(struct analyzer *analyzer, const struct member *member,
                         const struct member *other, uint32_t number)
{
    uint32_t at = number % WINDOWS_KEPT;
    struct window_sizes *mine = sizes_find(analyzer, member), *theirs = sizes_find(analyzer, other);
    struct draft draft = draft_new(&check_different_setup, POSSIBLE, member->comm);
    draft_cover_comm(&draft, member->comm);
    add_size_side(&draft, other, theirs->window[at].bytes, &theirs->window[at].site);
    add_size_side(&draft, member, mine->window[at].bytes, &mine->window[at].site);
    draft.finding.first_ns = draft.finding.last_ns = mine->window[at].site.time_ns;
    const struct values values = {
        .value = {(int64_t)theirs->window[at].bytes, number, (int64_t)mine->window[at].bytes}};
    mine->reported = theirs->reported = true;
    draft_headline(&draft, HEADLINE_WINDOW_SIZES, ADVICE_WINDOW_SIZES, &values);
    findings_report(analyzer, &draft, NULL);
}

void window_sizes_on_nccl(struct analyzer *analyzer, const struct event *event)
{
    const struct record *record = event->record;
    struct member *member = record->api == API_ncclCommWindowRegister && record->comm.comm
                                ? member_find(analyzer, record->comm.comm, record->comm.rank)
                                : NULL;
    if (!member || !member->made[WAIT_WINDOW] || event->thread->process->lost.control)
        return;
    struct window_sizes *sizes =
        state_get(analyzer, &check_different_setup, OWNER_MEMBER, &member->states);
    if (!sizes)
        return;
    uint32_t number = member->made[WAIT_WINDOW] - 1, at = number % WINDOWS_KEPT;
    sizes->window[at].bytes = record->comm.bytes;
    sizes->window[at].site = event->site;
    const struct member *other = find_partner(analyzer, member, number);
    const struct window_sizes *theirs = other ? sizes_find(analyzer, other) : NULL;
    if (theirs && !theirs->reported && !sizes->reported &&
        theirs->window[at].bytes != record->comm.bytes)
        report_sizes(analyzer, member, other, number);
}
