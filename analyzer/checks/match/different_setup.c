/* different_setup.c: DC109: ranks set a communicator up differently, as soon as the second of them
 * calls. A split that leaves someone waiting is found among the waits (missing_rank.c).
 *
 * Ranks may differ in their ncclConfig_t (blocking or not), colours and keys of a split: nothing is
 * wrong with that. Sources: NCCL user guide, "Creating a communicator" (nranks, ranks, one unique
 * id for one communicator), "Creating a communicator with options", "Shrinking a communicator" (the
 * same list on every rank that stays); nccl.h. */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/checks/match/split_groups.h"
#include "analyzer/checks/match/window_sizes.h"
#include "analyzer/states.h"
#include "analyzer/model/comm.h"
#include "analyzer/match/one_call.h"
#include "analyzer/model/process.h"
#include "analyzer/match/window.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

static struct called setup_call(const struct comm *comm)
{
    return call_of_api(setup_rows[comm->setup].call);
}

static enum advice advice_of(const struct comm *comm, enum advice of_init)
{
    return comm->setup == WAIT_GROW ? ADVICE_SETUP_GROW : of_init;
}

/* What the members of a communicator gave when they set it up. */
struct setup_claims {
    struct slot *claims; /* members by the nranks they gave; NULL while they agree */
    uint32_t finding;    /* about these */
    uint32_t unique_ids; /* given to ncclCommInitRankScalable by the first that came; 0 not known */
    struct site unique_ids_site;
    int unique_ids_rank;
    struct { /* the newest ncclCommShrink of it */
        bool seen;
        uint32_t ordinal;
        uint64_t excluded, count;
        struct site site;
        const struct member *member;
    } shrink;
    struct split_groups splits;
};

static struct setup_claims *claims_of(struct analyzer *analyzer, struct comm *comm)
{
    return state_get(analyzer, &check_different_setup, OWNER_COMM, &comm->states);
}

static void setup_claims_end(void *state)
{
    struct setup_claims *given = state;
    if (given->claims)
        slot_clear(given->claims);
    free(given->claims);
    split_groups_free(&given->splits);
}

static int begin_claims(struct setup_claims *given, const struct comm *comm,
                        const struct member *newcomer)
{
    given->claims = calloc(1, sizeof *given->claims);
    if (!given->claims)
        return -1;
    given->claims->variants = 1;
    given->claims->first.signature.count = (uint64_t)comm->nranks;
    int failed = 0;
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i] != newcomer && comm->member[i]->arrivals) {
            failed |= rankset_add(&given->claims->first.ranks, comm->member[i]->rank);
            given->claims->first.site = comm->member[i]->arrival;
        }
    return failed;
}

static int add_claim(struct setup_claims *given, const struct member *member, int nranks)
{
    struct slot *claims = given->claims;
    for (uint32_t i = 0; i < claims->variants; i++)
        if (slot_variant(claims, i)->signature.count == (uint64_t)nranks)
            return rankset_add(&slot_variant(claims, i)->ranks, member->rank);
    struct variant *more = realloc(claims->more, claims->variants * sizeof *more);
    if (!more)
        return -1;
    claims->more = more;
    more[claims->variants - 1] = (struct variant){.site = member->arrival};
    more[claims->variants - 1].signature.count = (uint64_t)nranks;
    claims->variants++;
    return rankset_add(&more[claims->variants - 2].ranks, member->rank);
}

/* All gave less ranks than the job has: it is about a group of ranks, whatever else is wrong. */
static bool is_of_part(const struct comm *comm, const struct setup_claims *given)
{
    int most = comm->nranks;
    for (uint32_t i = 0; given->claims && i < given->claims->variants; i++)
        if (most < (int)slot_variant(given->claims, i)->signature.count)
            most = (int)slot_variant(given->claims, i)->signature.count;
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i]->process->info.world_size <= most)
            return comm_is_of_group(comm);
    return comm->members > 0;
}

static void report_claims(struct analyzer *analyzer, const struct comm *comm,
                          struct setup_claims *given)
{
    struct draft draft = draft_new(&check_different_setup, CERTAIN, comm);
    struct values values = {0};
    bool is_part = is_of_part(comm, given);
    for (uint32_t i = 0; i < given->claims->variants; i++) {
        const struct variant *variant = slot_variant(given->claims, i);
        const struct act act = {.did = is_part ? DID_INIT_GROUP : DID_INIT_SIZE,
                                .call = setup_call(comm),
                                .number = variant->signature.count};
        struct finding_side *side = draft_side(&draft, &act, &variant->site);
        for (uint32_t k = 0; side && k < comm->members; k++)
            if (rankset_has(&variant->ranks, comm->member[k]->rank))
                draft_rank(&draft, side, comm->member[k]);
        if (side)
            values.each[draft.finding.sides - 1] = (int64_t)variant->signature.count;
        if (!draft.finding.first_ns || variant->site.time_ns < draft.finding.first_ns)
            draft.finding.first_ns = variant->site.time_ns;
        if (variant->site.time_ns > draft.finding.last_ns)
            draft.finding.last_ns = variant->site.time_ns;
    }
    draft_cover_comm(&draft, comm);
    draft_headline(&draft, HEADLINE_DIFFERENT_NRANKS,
                   advice_of(comm, is_part ? ADVICE_SAME_GROUPS : ADVICE_SAME_WORLD_SIZE), &values);
    if (given->finding) {
        findings_replace(analyzer, given->finding, &draft);
    } else {
        findings_report(analyzer, &draft, &given->finding);
    }
}

/* The rank that people know of a process that came as this member. */
static int caller_rank(const struct member *member, const struct process *process)
{
    bool is_known = process->info.rank >= 0 && !process->several_ranks;
    return is_known ? process->info.rank : member->rank;
}

static void report_one(struct analyzer *analyzer, const struct member *member, enum did did,
                       const struct site *second, enum headline headline, enum advice advice,
                       const struct values *values)
{
    const struct act act = {.did = did, .call = setup_call(member->comm)};
    struct draft draft = draft_new(&check_different_setup, CERTAIN, member->comm);
    struct finding_side *side = draft_side(&draft, &act, &member->arrival);
    if (rankset_add(&side->ranks, caller_rank(member, member->arrival.process)))
        draft.failed = true;
    draft_cover_comm(&draft, member->comm);
    draft.finding.first_ns = draft.finding.last_ns = second->time_ns;
    if (second->process != member->arrival.process || second->stack != member->arrival.stack) {
        struct finding_side *other = draft_side(&draft, &act, second);
        if (rankset_add(&other->ranks, caller_rank(member, second->process)))
            draft.failed = true;
        draft_cover(&draft, second->process);
    }
    draft_headline(&draft, headline, advice, values);
    findings_report(analyzer, &draft, NULL);
}

/* A side for each of two callers that gave different things. */
static void report_two(struct analyzer *analyzer, const struct comm *comm, const struct site *first,
                       int first_rank, const struct act *first_act, const struct site *second,
                       int second_rank, const struct act *second_act, enum headline headline,
                       enum advice advice, const struct values *values)
{
    struct draft draft = draft_new(&check_different_setup, CERTAIN, comm);
    struct finding_side *side = draft_side(&draft, first_act, first),
                        *other = draft_side(&draft, second_act, second);
    if (rankset_add(&side->ranks, first_rank) || rankset_add(&other->ranks, second_rank))
        draft.failed = true;
    draft_cover(&draft, first->process);
    draft_cover(&draft, second->process);
    draft.finding.first_ns = first->time_ns < second->time_ns ? first->time_ns : second->time_ns;
    draft.finding.last_ns = first->time_ns < second->time_ns ? second->time_ns : first->time_ns;
    draft_headline(&draft, headline, advice, values);
    findings_report(analyzer, &draft, NULL);
}

/* All ranks must give ncclCommInitRankScalable the same list of ids. */
static void check_unique_ids(struct analyzer *analyzer, struct process *process,
                             const struct record *record, struct member *member,
                             const struct site *site)
{
    struct comm *comm = member->comm;
    uint32_t ids = record->comm.ordinal;
    struct setup_claims *given = claims_of(analyzer, comm);
    (void)process;
    if (!given || !ids || ids == given->unique_ids || findings_find(analyzer, DC109, comm->id, 0))
        return;
    if (!given->unique_ids) {
        given->unique_ids = ids;
        given->unique_ids_site = *site;
        given->unique_ids_rank = member_shown_rank(member);
        return;
    }
    struct act first = {.did = DID_INIT_IDS,
                        .call = call_of_api(API_ncclCommInitRankScalable),
                        .number = given->unique_ids};
    struct act second = first;
    second.number = ids;
    const struct values values = {.value = {given->unique_ids, ids}};
    report_two(analyzer, comm, &given->unique_ids_site, given->unique_ids_rank, &first, site,
               member_shown_rank(member), &second, HEADLINE_DIFFERENT_UNIQUE_IDS,
               ADVICE_SAME_UNIQUE_IDS, &values);
}

/* The communicator of this unique id exists, or did: NCCL's bootstrap answers for an id only once.
 */
static void report_reuse(struct analyzer *analyzer, const struct member *member,
                         const struct record *record, const struct site *site)
{
    const struct act act = {.did = DID_INIT_USED_ID, .call = setup_call(member->comm)};
    struct one_call one = {
        .check = &check_different_setup,
        .certainty = CERTAIN,
        .comm = member->comm,
        .member = member,
        .process = site->process,
        .record = record,
        .act = &act,
        .site = *site,
    };
    const struct values values = {.flag = {member->destroyed}};
    one_call_headline(analyzer, &one, HEADLINE_UNIQUE_ID_USED, ADVICE_UNIQUE_ID_USED, &values);
}

/* The ranks that stay must leave out the same ones. */
static void check_shrink(struct analyzer *analyzer, struct process *process,
                         const struct record *record)
{
    struct comm *parent = comm_find(analyzer, record->comm.parent);
    const struct member *member = parent ? member_find(analyzer, parent->id, record->comm.rank)
                                         : NULL;
    struct setup_claims *given = parent ? claims_of(analyzer, parent) : NULL;
    if (!member || !given || !record->comm.bytes)
        return;
    struct site site = {
        .process = process,
        .stack = record->stack,
        .stack_is_address = record->flags & RECORD_FLAG_ADDRESS,
        .time_ns = record_realtime(process, record),
    };
    if (!given->shrink.seen || record->comm.ordinal > given->shrink.ordinal) {
        given->shrink.seen = true;
        given->shrink.ordinal = record->comm.ordinal;
        given->shrink.excluded = record->comm.pointer;
        given->shrink.count = record->comm.bytes;
        given->shrink.site = site;
        given->shrink.member = member;
        return;
    }
    if (record->comm.ordinal != given->shrink.ordinal ||
        record->comm.pointer == given->shrink.excluded ||
        findings_find(analyzer, DC109, parent->id, 0))
        return;
    int first = member_shown_rank(given->shrink.member), second = member_shown_rank(member);
    const struct values values = {
        .value = {(int64_t)given->shrink.count, (int64_t)record->comm.bytes},
        .flag = {record->comm.bytes == given->shrink.count},
    };
    const struct act shrinks = {.did = DID_CALLED_FUNCTION,
                                .call = call_of_api(API_ncclCommShrink)},
                     others = {.did = DID_SHRINK_OTHERS, .call = shrinks.call};
    report_two(analyzer, parent, &given->shrink.site, first, &shrinks, &site, second, &others,
               HEADLINE_DIFFERENT_SHRINKS, ADVICE_SAME_SHRINKS, &values);
}

/* Two callers gave one rank; is_mixed_up: they are two ranks of the job, and only one of them is
 * that rank of the group. */
static void report_taken(struct analyzer *analyzer, const struct member *member,
                         const struct site *second, bool is_mixed_up)
{
    const struct process *first = member->arrival.process, *process = second->process;
    struct values values = {
        .name = {process->info.host},
        .value = {member->rank, first->info.pid, process->info.pid},
    };
    if (is_mixed_up) {
        values.value[1] = caller_rank(member, first);
        values.value[2] = caller_rank(member, process);
        report_one(analyzer, member, DID_INIT_GROUP_RANK, second, HEADLINE_RANKS_MIXED_UP,
                   ADVICE_SAME_GROUPS, &values);
        return;
    }
    report_one(analyzer, member, DID_INIT_TAKEN_RANK, second,
               first == process ? HEADLINE_RANK_TAKEN_TWICE : HEADLINE_RANK_TAKEN,
               advice_of(member->comm, ADVICE_RANK_TAKEN), &values);
}

static void check_init(struct analyzer *analyzer, struct process *process,
                       const struct record *record, struct member *member)
{
    struct comm *comm = member->comm;
    struct site site = {
        .process = process,
        .stack = record->stack,
        .stack_is_address = record->flags & RECORD_FLAG_ADDRESS,
        .time_ns = record_realtime(process, record),
    };
    struct setup_claims *given = claims_of(analyzer, comm);
    if (!given)
        return;
    if (comm->nranks > 0 && record->comm.nranks != comm->nranks && !given->claims &&
        begin_claims(given, comm, member)) {
        analyzer->failed = true;
        return;
    }
    if (given->claims && member->arrivals == 1) {
        if (add_claim(given, member, record->comm.nranks))
            analyzer->failed = true;
        report_claims(analyzer, comm, given);
    }
    if (given->claims)
        return; /* which rank is out of range depends on whom one believes */
    if (record->comm.nranks > 0 && record->comm.rank >= record->comm.nranks) {
        const struct values values = {.value = {record->comm.rank, record->comm.nranks - 1}};
        report_one(analyzer, member, DID_INIT_BAD_RANK, &member->arrival, HEADLINE_BAD_RANK,
                   ADVICE_BAD_RANK, &values);
        return;
    }
    if (record->api == API_ncclCommInitRankScalable)
        check_unique_ids(analyzer, process, record, member, &site);
    bool is_mixed_up = member->arrival.process != process && comm->setup == WAIT_INIT &&
                       is_of_part(comm, given);
    if (member->arrivals > 1 && (member->exists || member->destroyed) && !is_mixed_up) {
        report_reuse(analyzer, member, record, &site);
        return;
    }
    if (member->arrivals > 1)
        report_taken(analyzer, member, &site, is_mixed_up);
}

static void check_groups(struct analyzer *analyzer, struct process *process,
                         const struct record *record)
{
    struct comm *parent = comm_find(analyzer, record->comm.parent);
    const struct member *member = parent ? member_find(analyzer, parent->id, record->comm.rank)
                                         : NULL;
    struct setup_claims *given = member ? claims_of(analyzer, parent) : NULL;
    struct site site = {
        .process = process,
        .stack = record->stack,
        .stack_is_address = record->flags & RECORD_FLAG_ADDRESS,
        .time_ns = record_realtime(process, record),
    };
    if (given)
        split_groups_add(analyzer, &given->splits, member, record, &site);
}

static void setup_on_setup(struct analyzer *analyzer, const struct event *event)
{
    const struct record *record = event->record;
    if (record->phase != RECORD_ENTER)
        return;
    if (record->api == API_ncclCommShrink) {
        check_shrink(analyzer, event->process, record);
    } else if (record->api == API_ncclCommSplit) {
        check_groups(analyzer, event->process, record);
    } else if (event->member)
        check_init(analyzer, event->process, record, event->member);
}

const struct check check_different_setup = {
    .code = DC109,
    .name = "different-setup",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_START | LACKS_SETUP,
    .explains = CODES(CODES_HANGS, DC405),
    .explains_later = CODES(DC111),
    .title = "ranks create a communicator with different arguments",
    .text =
        "Ranks that share an ncclUniqueId disagree: different world sizes, the same rank twice, or "
        "a rank out of range. Also reported: some members of a communicator did not call "
        "ncclCommSplit while others wait in it; a unique id was used for a second communicator; "
        "the ranks passed ncclCommShrink different lists, or ncclCommInitRankScalable different "
        "numbers of unique ids. Of a communicator that grows (ncclCommGrow): different sizes, or a "
        "new rank that takes an old one's number. Windows of different sizes "
        "(ncclCommWindowRegister) are possible: later releases of NCCL may allow them.\n\n"
        "With a device_id, PyTorch splits the default group's communicator for each new_group. If "
        "ranks call new_group in another order, nothing hangs, and what they reduce is wrong. The "
        "finding shows it by the color, a hash of the group's ranks.\n\n"
        "It shows as a hang in ncclCommInitRank or ncclCommSplit, or as an NCCL error there.\n\n"
        "If ranks wait in a split, it is certain only if the missing rank is itself stuck or gone; "
        "after a long silence it is possible.",
    .causes = CAUSES(
        {"torch.distributed.new_group called by its members only, or in a different order on some "
         "ranks: every rank must call it, with the same lists in the same order.",
         "A rank that is not a member waits elsewhere; or two sides create groups of different "
         "ranks.",
         {.did = SIGN_DID(DID_INIT_GROUP, DID_INIT_GROUP_RANK, DID_SPLIT_GROUP),
          .absent = SIGN_NEW_GROUP,
          .waiting = SIGN_NEW_GROUP}},
        {"WORLD_SIZE, RANK or MASTER_ADDR not set for each process, or left over from another job.",
         "The sides differ in the number of ranks, or two processes have the same rank; 'ddpcheck "
         "doctor' shows the variables.",
         {.did = SIGN_DID(DID_INIT_SIZE, DID_INIT_BAD_RANK, DID_INIT_TAKEN_RANK)}},
        {"Jobs that share a rendezvous address or id.",
         "More processes than ranks use one ncclUniqueId.",
         {.did = SIGN_DID(DID_INIT_USED_ID)}}),
    .source = "NCCL 2.29 user guide, \"Creating a Communicator\"; PyTorch 2.10 documentation, "
              "torch.distributed.new_group: all processes of the default group must call it",
    .example = "ncclCommInitRank(&comm, rank == 3 ? 5 : 4, id, rank);\n",
    .fix_c = "ncclCommInitRank(&comm, nranks, id, rank);       /* nranks and rank from one source "
             "*/\nncclCommSplit(comm, mine ? 0 : NCCL_SPLIT_NOCOLOR, rank, &part, NULL);   /* on "
             "every rank */\n",
    .fix_torch = "group = dist.new_group([0, 1])    # every rank calls it, also ranks 2 and 3\n",
    .on = {[EVENT_SETUP] = setup_on_setup, [EVENT_NCCL] = window_sizes_on_nccl},
    .state_bytes =
        {[OWNER_COMM] = sizeof(struct setup_claims), [OWNER_MEMBER] = sizeof(struct window_sizes)},
    .state_end = {[OWNER_COMM] = setup_claims_end},
};
