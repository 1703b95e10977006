/* communicator_order.c: DC204, not hung yet: two communicators whose operations come in different
 * orders on different ranks, with nothing that orders them on one of these.
 *
 * The rule (NCCL user guide, "Using multiple NCCL communicators concurrently"): operations of
 * several communicators must be issued in one order on all ranks, unless the ranks order them,
 * because their kernels wait for data and a GPU need not run two of them at once. Two ranks differ
 * in the order of x (of communicator X) and y (of Y) if one issued y before x and the other x
 * before y. If on both something orders the two, the job hangs (DC202). If on one of them nothing
 * does (no stream, event or host wait between y and x), it hangs when that GPU takes x first.
 *
 * It is enough to know, for each x of a member, how many operations of Y its process had issued on
 * that device (the count), and whether the last of these is ordered before x: where counts of two
 * members differ, the last one of the higher count is a y whose order differs. It is reported when
 * the other member issues that y, too. What is in one ncclGroup is launched in the order of the
 * group's communicators and counts as ordered; so does what can't be known (captured operations,
 * streams that were made before the trace began while the default stream is used, lost records).
 *
 * Memory: for each pair of communicators that share a device, a ring of the last RING operations.
 */
#include "analyzer/model/own_members.h"
#include "analyzer/states.h"
#include <stdlib.h>
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/model/order.h"
#include "analyzer/model/process.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

enum { RING = 128, PAIRS_MAX = 128, NEIGHBOURS_MAX = 16, CALL_BYTES = 256 };

struct last_collective {
    struct place place;
    uint64_t group, number;
    struct site site;
    struct signature signature;
    bool is_set;
    bool known; /* it can be reported what is ordered after it */
};

/* How X's operation `number` stands to Y's on the first member that issued it. */
struct relative_order {
    bool used, free; /* free: the last of `count` is not ordered before it, on some member with this
                        count */
    uint64_t number, count;
    const struct member *member;
    struct last_collective mine, before; /* the operation, and Y's last before it */
};

/* Two members stand differently; it is reported when `late` issues Y's operation `number`. */
struct suspect {
    bool used;
    const struct member *early, *late; /* of X: `early` issued Y's operation first */
    uint64_t number;
    struct last_collective early_x, early_y, late_x;
};

struct crossing_key {
    uint64_t comm, other;
};
struct crossing {
    struct crossing_key key;
    struct relative_order ring[RING];
    struct suspect suspect;
    bool reported;
    UT_hash_handle hh;
};

struct crossings {
    struct crossing *table;
};

static void crossings_end(void *state)
{
    struct crossings *crossings = state;
    struct crossing *crossing, *next;
    HASH_ITER(hh, crossings->table, crossing, next) {
        HASH_DEL(crossings->table, crossing);
        free(crossing);
    }
}

static struct crossing *crossing_find(struct analyzer *analyzer, uint64_t comm, uint64_t other)
{
    struct crossing_key key = {comm, other};
    struct crossing *crossing = NULL;
    struct crossings *crossings =
        state_find(analyzer, &check_communicator_order, OWNER_JOB, analyzer->states);
    if (crossings)
        TABLE_FIND(crossings->table, &key, crossing);
    return crossing;
}

static bool crossing_is_over(struct analyzer *analyzer, uint64_t id)
{
    const struct comm *comm = comm_find(analyzer, id);
    return !comm || comm->is_gone;
}

/* A pair has no more operations to compare once one of the two was destroyed. */
static void drop_over(struct analyzer *analyzer, struct crossings *crossings)
{
    struct crossing *crossing, *next;
    HASH_ITER(hh, crossings->table, crossing, next) {
        if (!crossing_is_over(analyzer, crossing->key.comm) &&
            !crossing_is_over(analyzer, crossing->key.other))
            continue;
        HASH_DEL(crossings->table, crossing);
        free(crossing);
    }
}

/* Makes it if it is not there. NULL if there are too many, or memory is short. */
static struct crossing *crossing_get(struct analyzer *analyzer, uint64_t comm, uint64_t other)
{
    struct crossing *crossing = crossing_find(analyzer, comm, other);
    if (crossing)
        return crossing;
    struct crossings *crossings =
        state_get(analyzer, &check_communicator_order, OWNER_JOB, &analyzer->states);
    if (crossings && HASH_COUNT(crossings->table) >= PAIRS_MAX)
        drop_over(analyzer, crossings);
    if (crossings && HASH_COUNT(crossings->table) >= PAIRS_MAX)
        return NULL;
    crossing = crossings ? calloc(1, sizeof *crossing) : NULL;
    if (crossing) {
        crossing->key = (struct crossing_key){comm, other};
        TABLE_ADD(crossings->table, key, crossing);
        if (TABLE_ADDED(crossing))
            return crossing;
    }
    free(crossing);
    analyzer->failed = true;
    return NULL;
}

/* Nothing makes the operation wait for Y's last one. */
static bool is_free(const struct operation *operation, const struct last_collective *last)
{
    return last->known && !operation->process->lost.control &&
           (!last->group || last->group != operation->record.op.group) &&
           order_before(operation->process, &last->place, operation->stream) == ORDER_NONE;
}

static struct finding_side *order_add_side(struct draft *draft, const struct member *member,
                                           const struct last_collective *first, enum did now)
{
    struct finding_side *side = draft_side_signature(draft, &first->signature, &first->site);
    draft_rank(draft, side, member);
    draft_side_now(draft, side, &(struct act){.did = now}, NULL);
    return side;
}

static void order_report(struct analyzer *analyzer, const struct suspect *suspect,
                         const struct comm *other)
{
    const struct comm *comm = suspect->early->comm;
    struct draft draft = draft_new(&check_communicator_order, POSSIBLE, comm);
    draft.finding.number = suspect->early_x.number;
    draft.finding.has_number = true;
    draft.finding.first_ns = suspect->early_x.site.time_ns;
    draft.finding.last_ns = suspect->late_x.site.time_ns;
    order_add_side(&draft, suspect->early, &suspect->early_y, DID_ISSUED_UNORDERED);
    order_add_side(&draft, suspect->late, &suspect->late_x, DID_ISSUED_FIRST);
    char call[CALL_BYTES], title[COMM_TITLE_BYTES];
    const struct values values = {
        .name = {comm_title(other, title),
                 signature_text(&suspect->early_x.signature, call, sizeof call)},
        .value = {suspect->early_y.number},
    };
    draft_headline(&draft, HEADLINE_UNORDERED, ADVICE_LAUNCH_ORDER, &values);
    findings_report(analyzer, &draft, NULL);
}

/* Both ranks have issued both operations: their orders differ for certain. */
static void confirm(struct analyzer *analyzer, struct crossing *crossing, const struct comm *other)
{
    const struct crossing *turned =
        crossing_find(analyzer, crossing->key.other, crossing->key.comm);
    bool reported = crossing->reported || (turned && turned->reported);
    crossing->suspect.used = false;
    crossing->reported = true;
    if (!(reported))
        order_report(analyzer, &crossing->suspect, other);
}

/* The member issues an operation that a suspicion about its neighbour waits for. */
static void confirm_neighbour(struct analyzer *analyzer, const struct operation *operation,
                              const struct member *neighbour)
{
    struct crossing *crossing =
        crossing_find(analyzer, neighbour->comm->id, operation->member->comm->id);
    if (!crossing || !crossing->suspect.used || crossing->suspect.late != neighbour ||
        crossing->suspect.number != operation->record.op.number)
        return;
    confirm(analyzer, crossing, operation->member->comm);
}

static bool order_has_issued(const struct member *late, const struct comm *other, uint64_t number)
{
    const struct member *member = own_member_first(late->process, other->id);
    while (member && member->device != late->device)
        member = member->own_next;
    return member && member->next > number;
}

static void order_compare(struct analyzer *analyzer, struct crossing *crossing,
                          const struct relative_order *first, const struct relative_order *now,
                          const struct comm *other)
{
    const struct relative_order *high = first->count > now->count ? first : now;
    const struct relative_order *low = high == first ? now : first;
    if (!high->free || crossing->suspect.used)
        return;
    crossing->suspect = (struct suspect){
        .used = true,
        .early = high->member,
        .late = low->member,
        .number = high->count - 1,
        .early_x = high->mine,
        .early_y = high->before,
        .late_x = low->mine,
    };
    if (order_has_issued(low->member, other, high->count - 1))
        confirm(analyzer, crossing, other);
}

/* How the operation stands to those of one other communicator on its device. */
static void stand(struct analyzer *analyzer, const struct operation *operation,
                  const struct member *neighbour, const struct last_collective *mine)
{
    const struct last_collective *last =
        state_find(analyzer, &check_communicator_order, OWNER_MEMBER, neighbour->states);
    if (last && !last->is_set)
        last = NULL;
    struct relative_order now = {
        .used = true,
        .number = operation->record.op.number,
        .count = last ? last->number + 1 : 0,
        .free = last && is_free(operation, last),
        .member = operation->member,
        .mine = *mine,
    };
    if (last)
        now.before = *last;
    struct crossing *crossing =
        crossing_get(analyzer, operation->member->comm->id, neighbour->comm->id);
    if (!crossing || crossing->reported)
        return;
    struct relative_order *first = &crossing->ring[now.number % RING];
    if (!first->used || first->number < now.number)
        *first = now;
    else if (first->number == now.number && first->count != now.count) {
        order_compare(analyzer, crossing, first, &now, neighbour->comm);
        return;
    } else if (first->number == now.number && now.free && !first->free)
        *first = now;
}

static void order_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    struct member *member = operation->member;
    if (api_class_of(operation->record.api) != CLASS_COLLECTIVE || member->comm->nranks == 1 ||
        (operation->record.flags & RECORD_FLAG_CAPTURE))
        return;
    struct last_collective *mine =
        state_get(analyzer, &check_communicator_order, OWNER_MEMBER, &member->states);
    if (!mine)
        return;
    *mine = (struct last_collective){
        .is_set = true,
        .place = operation->place,
        .group = operation->record.op.group,
        .number = operation->record.op.number,
        .site = operation->site,
        .signature = operation->signature,
        .known = operation->stream && !operation->process->lost.control &&
                 !(operation->process->info.lacks & (LACKS_CUDA | LACKS_STREAM)),
    };
    int neighbours = 0;
    for (const struct member *other = operation->process->members; other;
         other = other->process_next) {
        if (other->comm == member->comm || other->device != member->device || other->device < 0 ||
            other->comm->nranks == 1)
            continue;
        if (other->destroyed || neighbours++ == NEIGHBOURS_MAX)
            break; /* those that were destroyed come last */
        confirm_neighbour(analyzer, operation, other);
        stand(analyzer, operation, other, mine);
    }
}

static void order_on_release(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    struct crossings *crossings =
        state_find(analyzer, &check_communicator_order, OWNER_JOB, analyzer->states);
    if (crossings)
        drop_over(analyzer, crossings);
}

const struct check check_communicator_order = {
    .code = DC204,
    .name = "communicator-order",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .off_without = LOSS_CALLS,
    .needs = LACKS_STREAM | LACKS_CUDA,
    .title = "two communicators are used in different orders",
    .text = "Two ranks that share two communicators issued an operation of one and an operation of "
            "the other in different orders, and on one of the ranks nothing orders the two: no "
            "stream, no event, no wait of the host. The job did not hang, but it can.\n\n"
            "NCCL's kernels wait for data from their peers, and a GPU may be unable to run two of "
            "them at once. If the first rank's GPU runs one of them and the second rank's GPU the "
            "other, both wait forever. NCCL's user guide, \"Using multiple NCCL communicators "
            "concurrently\", asks for operations to be submitted in the same order across ranks. "
            "They must be ordered on each device as well, in the same order (By version, below). "
            "Whether the hang happens depends on the "
            "size of the operations, on other kernels and on chance.\n\n"
            "It is always possible, never certain. It is wrong if something that ddpcheck can't "
            "see orders the two, for example a flag in host memory that a thread polls. Operations "
            "in CUDA graphs, sends and receives are not checked.",
    .causes = CAUSES(
        {"Overlapping process groups (FSDP, tensor and pipeline parallel) that issue concurrently "
         "on streams of their own.",
         "The two source lines belong to different parallel dimensions; a run that does not hang "
         "proves nothing."},
        {"An operation of one group issued by autograd's thread, another by the main thread.",
         "The two calls of one rank have different threads."}),
    .source = "NCCL 2.29 user guide, \"Using multiple NCCL communicators concurrently\"",
    .example = "if (rank % 2) {\n    ncclAllReduce(b, b, n, ncclFloat, ncclSum, second, "
               "other_stream);\n    ncclAllReduce(a, a, n, ncclFloat, ncclSum, first, stream);\n} "
               "else {\n    ncclAllReduce(a, a, n, ncclFloat, ncclSum, first, stream);\n    "
               "ncclAllReduce(b, b, n, ncclFloat, ncclSum, second, other_stream);\n}\n",
    .fix_c = "ncclAllReduce(a, a, n, ncclFloat, ncclSum, first, stream);      /* in one order on "
             "all ranks, */\n"
             "cudaEventRecord(first_done, stream);                            /* and, up to NCCL "
             "2.25, on the device, too; */\n"
             "cudaStreamWaitEvent(other_stream, first_done, 0);               /* from 2.26 "
             "NCCL_LAUNCH_ORDER_IMPLICIT=1 does it */\n"
             "ncclAllReduce(b, b, n, ncclFloat, ncclSum, second, other_stream);\n",
    .fix_torch = "dist.all_reduce(a, group=first)      # in one order on all ranks, and from one "
                 "thread\ndist.all_reduce(b, group=second)\n",
    .on = {[EVENT_OPERATION] = order_on_operation, [EVENT_RELEASE] = order_on_release},
    .state_bytes =
        {[OWNER_JOB] = sizeof(struct crossings), [OWNER_MEMBER] = sizeof(struct last_collective)},
    .state_end = {[OWNER_JOB] = crossings_end},
};
