/* unmatched_message.c: DC108: sends and receives that nothing meets: the peer left without its
 * part, the peer is no rank, or a message to itself has not both its ends in one group.
 *
 * NCCL user guide, "Point-to-point communication": any communication needs a send on one rank and
 * the corresponding receive on the other. A message of no elements is no exception: NCCL uses it to
 * synchronise (its enqueue.cc: "zero size send/recv are syncs"), though a send of nothing may
 * happen to pass unmet. A rank's message to itself must have both its ends in one group: NCCL
 * refuses it otherwise ("Trying to send to self without a matching recv").
 *
 * Whose call is late rather than missing is for the hang checks (missing_rank.c). */
#include "analyzer/checks/match/invalid_call.h"
#include "analyzer/match/channel.h"
#include "analyzer/model/comm.h"
#include "analyzer/hang/ends.h"
#include "analyzer/match/one_call.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

/* How the peer left, if it is sure that it issues nothing more; NULL otherwise. */
static bool has_left(const struct member *peer, struct act *how)
{
    bool ended = peer->process->end_class == END_CLASS_CLEAN;
    *how = ended ? end_act(peer->process) : (struct act){.did = DID_LEFT};
    return ended ||
           (peer->leaving && !peer->aborted && peer->process->end_class != END_CLASS_CAUSE);
}

/* Where its program called exit() or failed, if that is known. */
static const struct site *left_at(const struct member *peer)
{
    return peer->process->ending.raised.stack ? &peer->process->ending.raised : NULL;
}

static void add_waiter(struct draft *draft, const struct channel_waiting *waiting,
                       const struct member *waiter)
{
    struct finding_side *side =
        draft_side_signature(draft, &waiting->first->signature, &waiting->first->site);
    draft_rank(draft, side, waiter);
}

static void add_peer(struct draft *draft, const struct channel_waiting *waiting,
                     const struct member *peer, int waiter, const struct act *how)
{
    const struct act act = {.did = waiting->receives ? DID_NEVER_SENT : DID_NEVER_RECEIVED,
                            .rank = waiter};
    const struct site site = {.process = peer->process};
    struct finding_side *side = draft_side(draft, &act, &site);
    draft_rank(draft, side, peer);
    draft_side_now(draft, side, how, left_at(peer));
}

static void report_waiting(struct analyzer *analyzer, const struct channel_waiting *waiting,
                           const struct member *waiter, const struct member *peer,
                           const struct act *how)
{
    bool may_pass = waiting->is_empty && !waiting->receives;
    struct draft draft =
        draft_new(&check_unmatched_message, may_pass ? POSSIBLE : CERTAIN, waiter->comm);
    if (may_pass)
        draft.finding.severity = SEVERITY_WARNING;
    draft.finding.number = waiting->first->number;
    draft.finding.has_number = true;
    draft.finding.first_ns = draft.finding.last_ns = waiting->first->site.time_ns;
    draft.finding.times = waiting->count;
    add_waiter(&draft, waiting, waiter);
    add_peer(&draft, waiting, peer, member_shown_rank(waiter), how);
    const struct values values = {
        .name = {datatype_name(waiting->first->signature.datatype)},
        .value = {(int64_t)waiting->first->signature.count, (int64_t)waiting->count - 1},
        .flag = {waiting->receives},
    };
    draft_headline(&draft, HEADLINE_UNMATCHED_MESSAGE, ADVICE_UNMATCHED_MESSAGE, &values);
    findings_report(analyzer, &draft, NULL);
}

/* What one wants to get from the peer, and another to give to it, is left: the peer made fewer
 * rounds than they (DC206). What was reported of one of the two before is replaced. */
static void report_early_exit(struct analyzer *analyzer, const struct channel_waiting *gets,
                              const struct channel_waiting *gives, const struct member *peer,
                              const struct act *how)
{
    const struct member *receiver = member_find(analyzer, gets->comm, gets->receiver),
                        *sender = member_find(analyzer, gives->comm, gives->sender);
    if (!receiver || !sender)
        return;
    struct draft draft = draft_new(&check_early_exit, CERTAIN, peer->comm);
    uint32_t known = findings_find(analyzer, DC108, gets->comm, gets->first->number);
    if (!known)
        known = findings_find(analyzer, DC108, gives->comm, gives->first->number);
    draft.finding.number = gets->first->number;
    draft.finding.has_number = true;
    draft.finding.first_ns = draft.finding.last_ns = gets->first->site.time_ns;
    add_waiter(&draft, gets, receiver);
    const struct site site = {.process = peer->process};
    draft_rank(&draft, draft_side(&draft, how, left_at(peer) ? left_at(peer) : &site), peer);
    add_waiter(&draft, gives, sender);
    const struct values values = {
        .value = {(int64_t)peer->calls_p2p, (int64_t)gives->first->number},
        .flag = {sender != receiver},
    };
    draft_headline(&draft, HEADLINE_LEFT_MESSAGES, ADVICE_LEFT_MESSAGES, &values);
    *gets->reported = *gives->reported = true;
    if (known && findings_of(analyzer, known)->finding.state == FINDING_OPEN)
        findings_replace(analyzer, known, &draft);
    else
        findings_report(analyzer, &draft, NULL);
}

static void unmatched_check(struct analyzer *analyzer, const struct channel_waiting *waiting)
{
    const struct comm *comm = comm_find(analyzer, waiting->comm);
    if (!comm || !comm->has_ended || *waiting->reported || waiting->is_signal)
        return;
    const struct member *waiter =
        member_find(analyzer, comm->id, waiting->receives ? waiting->receiver : waiting->sender);
    const struct member *peer =
        member_find(analyzer, comm->id, waiting->receives ? waiting->sender : waiting->receiver);
    struct act how;
    if (!peer || !has_left(peer, &how) || !waiter || waiter->aborted ||
        waiter->process->end_class == END_CLASS_CAUSE || waiter->process->lost.control ||
        peer->process->lost.control)
        return;
    struct channel_waiting other;
    if (channel_waits_for(analyzer, comm->id, peer->rank, !waiting->receives, &other)) {
        const struct channel_waiting *receive = waiting->receives ? waiting : &other;
        const struct channel_waiting *send = waiting->receives ? &other : waiting;
        report_early_exit(analyzer, receive, send, peer, &how);
        return;
    }
    *waiting->reported = true;
    report_waiting(analyzer, waiting, waiter, peer, &how);
}

static void unmatched_on_waits(struct analyzer *analyzer, const struct event *event)
{
    (void)event;

    channels_visit_waiting(analyzer, unmatched_check);
}

static void report_call(struct analyzer *analyzer, const struct operation *operation, enum did did,
                        enum headline headline, enum advice advice, struct values values)
{
    const struct act act = {.did = did, .call = call_of_api(operation->record.api)};
    struct one_call one = {
        .check = &check_unmatched_message,
        .certainty = CERTAIN,
        .comm = operation->member->comm,
        .member = operation->member,
        .process = operation->process,
        .record = &operation->record,
        .act = did == DID_CALLED ? NULL : &act,
        .site = operation->site,
    };
    values.call[0] = call_of_record(&operation->record);
    one_call_headline(analyzer, &one, headline, advice, &values);
}

/* A peer that is no rank, and a message to itself outside of any group. */
/* Another communicator that was split off the same one and has another number of ranks; NULL if
 * there is none. */
static const struct comm *find_uneven_sibling(const struct analyzer *analyzer,
                                              const struct comm *comm)
{
    for (const struct comm *other = analyzer->first_comm; comm->parent && other;
         other = other->next)
        if (other->parent == comm->parent && other->nranks > 0 && other->nranks != comm->nranks)
            return other;
    return NULL;
}

static void report_no_such_peer(struct analyzer *analyzer, const struct operation *operation)
{
    const struct comm *comm = operation->member->comm;
    const struct comm *sibling = find_uneven_sibling(analyzer, comm);
    char name[COMM_LABEL_BYTES];
    const struct values values = {
        .name = {sibling ? comm_label(sibling, name) : NULL},
        .value = {operation->record.op.root, comm->nranks - 1, sibling ? sibling->nranks : 0},
    };
    report_call(analyzer, operation, DID_CALLED, HEADLINE_NO_SUCH_PEER,
                comm->parent ? ADVICE_PEER_OF_SPLIT : ADVICE_PEER_OF_COMM, values);
}

static void unmatched_on_nccl(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    if (api_class_of(record->api) != CLASS_P2P || record->flags & RECORD_FLAG_GONE ||
        !record->op.comm)
        return;
    struct operation operation = {
        .process = thread->process,
        .thread = thread,
        .record = *record,
        .site = event->site,
        .member = member_find(analyzer, record->op.comm, record->op.rank),
    };
    if (!operation.member || operation.member->process != thread->process)
        return;
    int nranks = operation.member->comm->nranks, peer = record->op.root;
    bool out_of_range = peer < 0 || (nranks > 0 && peer >= nranks),
         alone = peer == record->op.rank && !record->op.group &&
                 !kind_has(record->api, KIND_ONE_SIDED);
    if (!out_of_range && !alone)
        return;
    invalid_note_call(analyzer, thread, record);
    if (alone) {
        report_call(analyzer, &operation,
                    record->api == API_ncclRecv ? DID_CALLED_FROM_ITSELF : DID_CALLED_TO_ITSELF,
                    HEADLINE_ALONE_TO_ITSELF, ADVICE_ALONE_TO_ITSELF, (struct values){0});
        return;
    }
    report_no_such_peer(analyzer, &operation);
}

static bool unmatched_is_to_itself(const struct operation *call, const struct member *member)
{
    return api_class_of(call->record.api) == CLASS_P2P &&
           !kind_has(call->record.api, KIND_ONE_SIDED) && call->member == member &&
           call->record.op.root == call->record.op.rank;
}

/* Messages of a member to itself: as many sends as receives. */
static void check_itself(struct analyzer *analyzer, const struct operation *calls, uint32_t count,
                         uint32_t first)
{
    const struct member *member = calls[first].member;
    const struct operation *last[2] = {NULL, NULL};
    int balance = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!unmatched_is_to_itself(&calls[i], member))
            continue;
        if (i < first)
            return; /* counted from there */
        bool receives = calls[i].record.api == API_ncclRecv;
        balance += receives ? -1 : 1;
        last[receives] = &calls[i];
    }
    if (!balance)
        return;
    invalid_note_group(analyzer, calls[first].thread);
    const struct values none = {0};
    if (balance > 0)
        report_call(analyzer, last[0], DID_CALLED_TO_ITSELF, HEADLINE_SENDS_TO_ITSELF,
                    ADVICE_UNEVEN_TO_ITSELF, none);
    else
        report_call(analyzer, last[1], DID_CALLED_FROM_ITSELF, HEADLINE_RECEIVES_FROM_ITSELF,
                    ADVICE_UNEVEN_TO_ITSELF, none);
}

static void unmatched_on_group(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct operation *calls = event->operation;
    uint32_t count = event->count;
    for (uint32_t i = 0; i < count && !thread->process->lost.control; i++)
        if (unmatched_is_to_itself(&calls[i], calls[i].member))
            check_itself(analyzer, calls, count, i);
}

const struct check check_unmatched_message = {
    .code = DC108,
    .name = "unmatched-message",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .off_without = LOSS_CALLS,
    .needs = LACKS_CALLS | LACKS_P2P,
    .explains = CODES(CODES_HANGS, DC111),
    .explains_later = CODES(DC108),
    .title = "a send or receive is never matched",
    .text =
        "A send needs a receive on the peer, and a receive a send, each pair in order. Here the "
        "peer destroyed the communicator or terminated without issuing its part. Or the peer is "
        "not a rank of the communicator. Or a rank sends to itself without a receive in the same "
        "ncclGroup, which NCCL refuses.\n\n"
        "It shows as a receive or a send that waits forever, or as ncclInvalidUsage. A send that "
        "fits NCCL's buffers may also succeed by luck; then the next receive gets its data, which "
        "is the wrong data.\n\n"
        "Empty messages count as well, since NCCL synchronizes with them. If only empty sends are "
        "left over, it is only possible, because they may have no effect. It is not reported if a "
        "call of the pair was captured into a graph (replays are not seen), if records were lost, "
        "or if one of the two ranks crashed or aborted the communicator: then that is the fault. A "
        "peer that is only late is not DC108 but DC201 or DC203. A peer that left both a send and "
        "a receive unmatched made fewer rounds than the others: DC206.",
    .causes = CAUSES(
        {"The last micro-batch of a pipeline, or a warm-up or cool-down phase that is one step too "
         "long on one stage.",
         "The number of sends and receives between the pair differs by one."},
        {"An all-to-all made of sends and receives that skips empty messages on one side only.",
         "The unmatched message has few elements or none."},
        {"A neighbour computed past the end of the chain.",
         "The peer is rank -1, or is not a rank of the communicator."},
        {"A rank that passed ncclCommSplit a different color from the rest of its group.",
         "Communicators of one split have different numbers of ranks."}),
    .source = "NCCL 2.29 user guide, \"Point-to-point communication\"",
    .example = "if (rank == 0) ncclSend(x, n, ncclFloat, 1, comm, stream);      /* rank 1 never "
               "receives */\n",
    .fix_c = "if (rank == 0) ncclSend(x, n, ncclFloat, 1, comm, stream);\nif (rank == 1) "
             "ncclRecv(x, n, ncclFloat, 0, comm, stream);\n",
    .fix_torch = "if rank + 1 < world_size: dist.send(x, dst=rank + 1)    # the last stage has no "
                 "successor\nif rank > 0: dist.recv(y, src=rank - 1)\n",
    .on = {[EVENT_NCCL] = unmatched_on_nccl,
           [EVENT_GROUP] = unmatched_on_group,
           [EVENT_WAITS] = unmatched_on_waits},
};
