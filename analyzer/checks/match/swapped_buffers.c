/* swapped_buffers.c: DC112: two buffers change places on some ranks, in calls that look the same to
 * NCCL. */
#include <stdlib.h>

#include "analyzer/states.h"
#include "analyzer/findings.h"
#include "analyzer/match/parts.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

enum {
    PENDING = 64,      /* operations that not all members have issued; older ones are dropped */
    SHARED_MAX = 256,  /* parts that all members used together; of more none is known */
    CROSSINGS_MAX = 8, /* pairs of parts that met */
    /* Both parts were used by all so often: then the members' memory has the same names. A weaker
     * rule was wrong about caching allocators, whose blocks differ between ranks; this one was
     * about none of 509 traces of correct programs. */
    SHARED_LEAST = 2,
    /* So near to each other the two operations are one swap, not two changes: the same traces. */
    SWAP_OPERATIONS = 64,
    /* Without parts that all used: both meet so often either way round. The same traces. */
    CROSSED_LEAST = 2
};

/* An operation, as far as it was issued. */
struct used_parts {
    uint64_t number, signature;
    uint64_t part[2];     /* of the first that came, and of others; 0: none yet */
    struct site site[2];  /* of the first that used each */
    struct rankset other; /* ranks in the communicator that used part[1] */
    uint32_t came;
    bool is_unclear; /* a third part, or one that is not known */
};

struct shared_part {
    uint64_t part, times;
};

/* Two parts met: some ranks used one, and the others the other. */
struct part_crossing {
    uint64_t low, high;               /* the parts, in the order of their names */
    struct rankset odd;               /* ranks in the communicator, fewer than half */
    uint64_t times[2];                /* the odd ranks used high; low */
    uint64_t number[2], signature[2]; /* of the last of these */
    struct site odd_site, site;
};

struct buffer_swaps {
    struct used_parts pending[PENDING];
    struct shared_part shared[SHARED_MAX];
    uint32_t shared_count;
    struct part_crossing crossing[CROSSINGS_MAX];
    uint32_t crossings;
    uint32_t finding;
};

/* What a communicator keeps is made when one of its members first uses memory that has a name. */
struct swaps_of_comm {
    struct buffer_swaps *swaps;
};

static void swaps_end(void *state)
{
    struct buffer_swaps *swaps = ((struct swaps_of_comm *)state)->swaps;
    for (int i = 0; swaps && i < PENDING; i++)
        rankset_free(&swaps->pending[i].other);
    for (uint32_t i = 0; swaps && i < swaps->crossings; i++)
        rankset_free(&swaps->crossing[i].odd);
    free(swaps);
}

static void memory_parts_end(void *state)
{
    parts_free(state);
}

static uint64_t times_shared(const struct buffer_swaps *swaps, uint64_t part)
{
    for (uint32_t i = 0; i < swaps->shared_count; i++)
        if (swaps->shared[i].part == part)
            return swaps->shared[i].times;
    return 0;
}

static void note_shared(struct buffer_swaps *swaps, uint64_t part)
{
    uint32_t i = 0;
    while (i < swaps->shared_count && swaps->shared[i].part != part)
        i++;
    if (i == SHARED_MAX)
        return;
    swaps->shared[i].part = part;
    swaps->shared[i].times++;
    swaps->shared_count += i == swaps->shared_count;
}

static bool is_swap(const struct buffer_swaps *swaps, const struct part_crossing *crossing)
{
    uint64_t a = crossing->number[0], b = crossing->number[1];
    if (!crossing->times[0] || !crossing->times[1])
        return false;
    if (crossing->times[0] >= CROSSED_LEAST && crossing->times[1] >= CROSSED_LEAST)
        return true;
    return (a > b ? a - b : b - a) <= SWAP_OPERATIONS &&
           crossing->signature[0] == crossing->signature[1] &&
           times_shared(swaps, crossing->low) >= SHARED_LEAST &&
           times_shared(swaps, crossing->high) >= SHARED_LEAST;
}

static void report_swap(struct analyzer *analyzer, struct buffer_swaps *swaps,
                        const struct comm *comm, const struct part_crossing *crossing,
                        const struct signature *signature)
{
    struct draft draft = draft_new(&check_swapped_buffers, POSSIBLE, comm);
    struct finding_side *odd = draft_side_signature(&draft, signature, &crossing->odd_site);
    struct finding_side *others = draft_side_signature(&draft, signature, &crossing->site);
    bool is_first = crossing->number[0] < crossing->number[1];
    for (uint32_t i = 0; i < comm->members; i++)
        draft_rank(&draft, rankset_has(&crossing->odd, comm->member[i]->rank) ? odd : others,
                   comm->member[i]);
    draft.finding.first_ns = draft.finding.last_ns = crossing->odd_site.time_ns;
    draft.finding.number = crossing->number[!is_first];
    draft.finding.has_number = true;
    const struct values values = {.value = {(int64_t)crossing->number[is_first]}};
    draft_headline(&draft, HEADLINE_SWAPPED_BUFFERS, ADVICE_SWAPPED_BUFFERS, &values);
    findings_report(analyzer, &draft, &swaps->finding);
}

static bool is_same_set(const struct rankset *a, const struct rankset *b)
{
    int rank = -1;
    if (rankset_count(a) != rankset_count(b))
        return false;
    while ((rank = rankset_next(a, rank + 1)) >= 0)
        if (!rankset_has(b, rank))
            return false;
    return true;
}

/* Takes over the set. NULL: there is no room for one more. */
static struct part_crossing *find_crossing(struct buffer_swaps *swaps, uint64_t low, uint64_t high,
                                           struct rankset *odd)
{
    uint32_t i = 0;
    while (i < swaps->crossings &&
           (swaps->crossing[i].low != low || swaps->crossing[i].high != high ||
            !is_same_set(&swaps->crossing[i].odd, odd)))
        i++;
    if (i == CROSSINGS_MAX)
        return NULL;
    if (i == swaps->crossings) {
        swaps->crossing[swaps->crossings++] =
            (struct part_crossing){.low = low, .high = high, .odd = *odd};
        *odd = (struct rankset){0};
    }
    return &swaps->crossing[i];
}

/* The ranks that used the part of fewer; of as many, those that do not include the first. */
static int find_odd(const struct used_parts *used, const struct comm *comm, struct rankset *odd)
{
    int others = rankset_count(&used->other), members = (int)comm->members;
    bool is_other = 2 * others < members ||
                    (2 * others == members && !rankset_has(&used->other, comm->member[0]->rank));
    int failed = 0;
    for (uint32_t i = 0; i < comm->members; i++)
        if (rankset_has(&used->other, comm->member[i]->rank) == is_other)
            failed |= rankset_add(odd, comm->member[i]->rank);
    return failed ? -1 : is_other;
}

static void note_crossing(struct analyzer *analyzer, struct buffer_swaps *swaps,
                          const struct comm *comm, const struct used_parts *used)
{
    struct rankset odd = {0};
    int mine = find_odd(used, comm, &odd);
    analyzer->failed |= mine < 0;
    struct part_crossing *crossing = NULL;
    bool is_low = mine >= 0 && used->part[mine] < used->part[!mine];
    int low = is_low ? mine : !mine;
    if (mine >= 0)
        crossing = find_crossing(swaps, used->part[low], used->part[!low], &odd);
    if (crossing) {
        crossing->times[is_low]++;
        crossing->number[is_low] = used->number;
        crossing->signature[is_low] = used->signature;
        crossing->odd_site = used->site[mine];
        crossing->site = used->site[!mine];
    }
    rankset_free(&odd);
}

/* All members have issued it. */
static void judge_operation(struct analyzer *analyzer, struct buffer_swaps *swaps,
                            const struct operation *operation, struct used_parts *used)
{
    const struct comm *comm = operation->member->comm;
    if (!used->part[1])
        note_shared(swaps, used->part[0]);
    else
        note_crossing(analyzer, swaps, comm, used);
    for (uint32_t i = 0; i < swaps->crossings && !swaps->finding; i++)
        if (is_swap(swaps, &swaps->crossing[i]))
            report_swap(analyzer, swaps, comm, &swaps->crossing[i], &operation->signature);
}

/* The operation's entry, empty if it is new; NULL: a later one has its place. */
static struct used_parts *find_used(struct buffer_swaps *swaps, const struct operation *operation)
{
    uint64_t number = operation->record.op.number;
    struct used_parts *used = &swaps->pending[number % PENDING];
    if (used->came && used->number > number)
        return NULL;
    if (!used->came || used->number < number) {
        rankset_free(&used->other);
        *used = (struct used_parts){
            .number = number,
            .signature = signature_hash(&operation->signature),
        };
    }
    return used;
}

static int take_part(struct used_parts *used, const struct operation *operation, uint64_t part)
{
    int which = used->came && part != used->part[0];
    used->came++;
    used->is_unclear |= !part || used->signature != signature_hash(&operation->signature) ||
                        (which && used->part[1] && part != used->part[1]);
    if (used->is_unclear)
        return 0;
    if (!used->part[which])
        used->site[which] = operation->site;
    used->part[which] = part;
    return which ? rankset_add(&used->other, operation->member->rank) : 0;
}

static void swaps_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    struct comm *comm = operation->member->comm;
    const struct memory_parts *parts =
        state_find(analyzer, &check_swapped_buffers, OWNER_PROCESS, operation->process->states);
    struct swaps_of_comm *state =
        state_get(analyzer, &check_swapped_buffers, OWNER_COMM, &comm->states);
    if (!state || !parts || api_class_of(operation->record.api) != CLASS_COLLECTIVE)
        return;
    uint64_t part = parts_name(parts, operation);
    if (!state->swaps && part && !(state->swaps = calloc(1, sizeof *state->swaps)))
        analyzer->failed = true;
    struct used_parts *used =
        state->swaps && !state->swaps->finding ? find_used(state->swaps, operation) : NULL;
    if (!used)
        return;
    analyzer->failed |= take_part(used, operation, part) != 0;
    if (!used->is_unclear && comm->nranks > 1 && used->came == (uint32_t)comm->nranks &&
        comm->members == used->came)
        judge_operation(analyzer, state->swaps, operation, used);
}

static void swaps_on_call(struct analyzer *analyzer, const struct event *event)
{
    struct memory_parts *parts =
        event->class == CLASS_MEMORY
            ? state_get(analyzer, &check_swapped_buffers, OWNER_PROCESS, &event->process->states)
            : NULL;
    analyzer->failed |= parts && parts_note(parts, event->record);
}

const struct check check_swapped_buffers = {
    .code = DC112,
    .name = "swapped-buffers",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .off_without = LOSS_CUDA | LOSS_CALLS,
    .needs = LACKS_ADDRESSES | LACKS_CUDA | LACKS_CALLS,
    .title = "two buffers change places on some ranks",
    .text =
        "NCCL compares the count, datatype and operator of a call, not what it is about. Where two "
        "buffers of one size are reduced in another order on some ranks, one rank's first buffer "
        "is added to the others' second. A part of memory has the same name in every process: "
        "which allocation of its size it is, and the offset in it. Two buffers have changed places "
        "if some ranks use one where the others use the other, and soon after the other way "
        "round.\n\n"
        "It shows as a job that learns badly, without any error.\n\n"
        "It is reported only if all ranks use both parts together at other times, or if they "
        "cross again and again. It can be wrong where a program fills its buffers in another "
        "order on some ranks on purpose. Views of one allocation that a caching allocator places "
        "differently on each rank are not compared.",
    .causes =
        CAUSES({"Buffers that are reduced in the order in which they became ready, or in that of a "
                "dictionary or a set that is filled differently.",
                "Print the names in the order of the calls on two ranks."},
               {"Two threads or streams that issue on one communicator without an order.",
                "The order differs between runs."}),
    .source = "NCCL 2.29 user guide, \"Collective Communication Functions\": calls are matched by "
              "their order on the communicator",
    .example =
        "ncclAllReduce(a, a, n, ncclFloat, ncclSum, comm, stream);       /* rank 0: a, b */\n"
        "ncclAllReduce(b, b, n, ncclFloat, ncclSum, comm, stream);       /* rank 1: b, a "
        "*/\n",
    .fix_c = "for (int i = 0; i < buckets; i++)      /* the same order on every rank */\n"
             "    ncclAllReduce(bucket[i], bucket[i], n, ncclFloat, ncclSum, comm, stream);\n",
    .fix_torch =
        "for name in sorted(gradients):      # not in the order in which they became ready\n"
        "    dist.all_reduce(gradients[name])\n",
    .on = {[EVENT_OPERATION] = swaps_on_operation, [EVENT_CALL] = swaps_on_call},
    .state_bytes = {[OWNER_COMM] = sizeof(struct swaps_of_comm),
                    [OWNER_PROCESS] = sizeof(struct memory_parts)},
    .state_end = {[OWNER_COMM] = swaps_end, [OWNER_PROCESS] = memory_parts_end},
};
