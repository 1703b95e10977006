/* operations.c: turns the records of NCCL calls into operations of members. */
#include "analyzer/model/operations.h"

#include "analyzer/model/graphs.h"

#include <errno.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/match/channel.h"
#include "analyzer/model/comm.h"
#include "analyzer/match/empties.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/order.h"
#include "analyzer/model/process.h"
#include "analyzer/model/progress.h"
#include "analyzer/model/timelines.h"
#include "analyzer/match/window.h"
#include "lib/base/invariant.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

enum { GROUP_STREAMS_MAX = 64 };

static void member_note_issuer(struct member *member, struct thread *thread)
{
    for (uint32_t i = 0; i < member->issuers; i++)
        if (member->issuer[i] == thread)
            return;
    if (member->issuers < MEMBER_ISSUERS_MAX)
        member->issuer[member->issuers++] = thread;
    else
        member->more_issuers = true;
}

/* NCCL lets each launch of a communicator wait for the previous, also if that is on another
 * stream (2.x, ncclLaunchPrepare: the device stream that all launches join). Its guide does not
 * promise that, but it orders. */
static int order_after_last(struct operation *operation)
{
    struct stream_state *stream = operation->stream;
    struct member *member = operation->member;
    bool is_captured = stream->is_captured;
    struct place last = is_captured ? member->launches.captured : member->launches.last;
    bool is_one_launch = last.position == operation->process->now;
    if (is_captured)
        member->launches.captured = operation->place;
    bool differs = last.position && last.timeline != stream->timeline && !is_one_launch &&
                   !(operation->process->info.lacks & LACKS_STREAM);
    bool is_replay = operation->record.flags & RECORD_FLAG_REPLAY;
    operation->is_unordered = differs && is_replay && member->launches.is_replay &&
                              order_before(operation->process, &last, stream) == ORDER_NONE;
    if (!is_captured)
        member->launches.is_replay = is_replay;
    if (differs && !is_captured && clock_merge(&stream->ahead, &member->launches.ahead_of_last))
        return -1;
    if (differs && clock_raise(&stream->ahead, last))
        return -1;
    if (is_captured || is_one_launch)
        return 0;
    clock_clear(&member->launches.ahead_of_last);
    return clock_merge(&member->launches.ahead_of_last, &stream->ahead);
}

/* The operation takes its place on its stream, if that is known. */
static int put_on_stream(struct operation *operation)
{
    if (order_stream(operation->process, &operation->record, &operation->stream))
        return -1;
    if (!operation->stream)
        return 0;
    return order_put(operation->process, operation->stream, &operation->place) ||
                   order_after_last(operation)
               ? -1
               : 0;
}

static void ask_checks(const struct operation *operation, enum event_kind kind)
{
    struct analyzer *analyzer = operation->process->analyzer;
    const struct event event = {.kind = kind,
                                .class = api_class_of(operation->record.api),
                                .process = operation->process,
                                .thread = operation->thread,
                                .site = operation->site,
                                .record = &operation->record,
                                .member = operation->member,
                                .operation = operation};
    event_handle(analyzer, &event);
    if (kind == EVENT_OPERATION)
        payloads_note_operation(analyzer, operation);
}

/* What was captured into a graph is issued when the graph is launched, which makes records of its
 * own: here it is no operation yet, and only its buffers are of interest. */
static int issue_captured(struct operation *operation)
{
    struct window_answer match = {0};
    struct channel_pair pair = {0};
    operation->match = &match;
    operation->pair = &pair;
    if (put_on_stream(operation))
        return -1;
    if (operation->stream && operation->stream->capture)
        capture_note_member(operation->stream->capture, operation->member);
    ask_checks(operation, EVENT_OPERATION);
    return 0;
}

/* It is compared with its peers', who wait for it; its stream and its buffers had nothing of it. */
static int issue_refused(struct operation *operation)
{
    struct member *member = operation->member;
    struct window_answer match = {0};
    operation->match = &match;
    if (window_pass(member->comm, member, operation->record.op.number, &operation->signature,
                    &operation->site, &match))
        return -1;
    ask_checks(operation, EVENT_REFUSED);
    return 0;
}

/* Brings the model up to date, then asks the checks. */
static int issue(struct operation *operation)
{
    struct member *member = operation->member;
    invariant(member->process == operation->process &&
                  operation->thread->process == member->process,
              "an operation is issued by a thread of its member's process");
    struct channel *channel = NULL;
    struct window_answer match = {0};
    struct channel_pair pair = {0};
    if (operation->record.flags & RECORD_FLAG_CAPTURE)
        return issue_captured(operation);
    if (operation->record.flags & RECORD_FLAG_REFUSED)
        return issue_refused(operation);
    member_note_issuer(member, operation->thread);
    operation->thread->uses_nccl = true;
    member->has_progress = operation->record.op.slot != RECORD_NO_SLOT;
    member->last = operation->signature;
    member->last.api = operation->record.api;
    member->has_last = true;
    if (api_class_of(operation->record.api) == CLASS_P2P) {
        member->calls_p2p++;
        if (channel_post(operation->process->analyzer, operation, &channel, &pair))
            return -1;
    } else if (window_pass(member->comm, member, operation->record.op.number, &operation->signature,
                           &operation->site, &match)) {
        return -1;
    }
    /* The call itself may wait for its peers (lazy connection). */
    if (put_on_stream(operation) ||
        progress_issue(operation->process, operation, channel, &operation->thread->waits_for))
        return -1;
    operation->match = &match;
    operation->pair = &pair;
    ask_checks(operation, EVENT_OPERATION);
    timelines_hand_over(operation->process);
    return 0;
}

/* What a graph replays stands together because the graph holds it, not because the program grouped
 * it. */
static bool counts_in_group(const struct operation *call)
{
    return api_class_of(call->record.api) == CLASS_COLLECTIVE &&
           !(call->record.flags & (RECORD_FLAG_CAPTURE | RECORD_FLAG_REPLAY));
}

/* Sets in each call of the group how many calls there are on its communicator, and which it is. */
static void describe_group(struct thread *thread)
{
    for (uint32_t i = 0; i < thread->group_calls; i++) {
        struct operation *first = &thread->group[i];
        if (first->signature.group_size || !counts_in_group(first))
            continue;
        uint32_t size = 0;
        uint64_t hash = 0;
        for (uint32_t k = i; k < thread->group_calls; k++)
            if (thread->group[k].member == first->member && counts_in_group(&thread->group[k])) {
                thread->group[k].signature.group_index = size++;
                hash += signature_hash(&thread->group[k].signature);
            }
        for (uint32_t k = i; k < thread->group_calls; k++)
            if (thread->group[k].member == first->member && counts_in_group(&thread->group[k])) {
                thread->group[k].signature.group_size = size;
                thread->group[k].signature.group_hash = hash;
            }
    }
}

/* The calls of one communicator in a group are one launch, also if they are on several streams: it
 * begins when all of these have reached it, and none of them goes on before it is done (NCCL user
 * guide, "Mixing Multiple Streams within the same ncclGroupStart/End() group"). Orders them up to
 * the position. */
static int join_group_streams(struct thread *thread, uint64_t position)
{
    struct stream_state *stream[GROUP_STREAMS_MAX], *own;
    for (uint32_t i = 0; i < thread->group_calls; i++) {
        const struct member *member = thread->group[i].member;
        bool is_first = true;
        for (uint32_t k = 0; k < i && is_first; k++)
            is_first = thread->group[k].member != member;
        uint32_t count = 0;
        for (uint32_t k = i; k < thread->group_calls && is_first && count < GROUP_STREAMS_MAX;
             k++) {
            if (thread->group[k].member != member)
                continue;
            if (order_stream(thread->process, &thread->group[k].record, &own))
                return -1;
            bool is_new = own;
            for (uint32_t n = 0; n < count && is_new; n++)
                is_new = stream[n] != own;
            if (is_new)
                stream[count++] = own;
        }
        if (count > 1 && order_join(thread->process, stream, count, position))
            return -1;
    }
    return 0;
}

static bool group_has_streams(const struct thread *thread)
{
    for (uint32_t i = 1; i < thread->group_calls; i++)
        if (thread->group[i].record.stream != thread->group[0].record.stream)
            return true;
    return false;
}

int operations_close_group(struct thread *thread)
{
    bool joins = group_has_streams(thread);
    int result = joins ? join_group_streams(thread, thread->process->now - 1) : 0;
    describe_group(thread);
    const struct event event = {.kind = EVENT_GROUP,
                                .process = thread->process,
                                .thread = thread,
                                .operation = thread->group,
                                .count = thread->group_calls};
    if (!thread->group_cut)
        event_handle(thread->process->analyzer, &event);
    for (uint32_t i = 0; i < thread->group_calls; i++)
        result |= issue(&thread->group[i]);
    if (joins)
        result |= join_group_streams(thread, thread->process->now);
    thread->group_calls = 0;
    return result;
}

static int keep_for_group(struct thread *thread, const struct operation *operation)
{
    struct operation *grown =
        array_room(thread->group, sizeof *grown, thread->group_calls, &thread->group_capacity, 8);
    if (!grown)
        return -1;
    thread->group = grown;
    invariant(thread->group_calls < GROUP_CALLS_MAX, "a group that is kept has its bound");
    thread->group[thread->group_calls++] = *operation;
    return 0;
}

static bool is_nonsense(const struct record *record)
{
    return record->op.rank < 0 || record->op.number >> NUMBER_MAX_BITS;
}

/* Messages are matched by counting them, which needs all of them, on both sides. */
static bool cannot_be_matched(const struct process *process, const struct record *record)
{
    const struct member *peer = member_find(process->analyzer, record->op.comm, record->op.root);
    return process->info.lacks & LACKS_P2P || (peer && peer->process->info.lacks & LACKS_P2P);
}

/* NCCL refuses a message to a rank that is not there (unmatched_message.c), and one to the
 * sender itself outside of a group; others need both sides' records. */
static bool is_no_message(const struct comm *comm, const struct event *event)
{
    const struct record *record = event->record;
    return record->op.root < 0 || (comm->nranks > 0 && record->op.root >= comm->nranks) ||
           (record->op.root == record->op.rank && !record->op.group &&
            !kind_has(record->api, KIND_ONE_SIDED)) ||
           cannot_be_matched(event->process, record);
}

int operations_feed(struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    if (!record->op.comm)
        return ENGINE_OK; /* NULL, or whose creation was not seen: refused_calls.c */
    if (is_nonsense(record))
        return ENGINE_SKIPPED;
    if (record->flags & RECORD_FLAG_GONE)
        return ENGINE_OK; /* invalid_call.c */
    /* A group whose end was lost ends where another begins. */
    bool cut = thread->group_calls >= GROUP_CALLS_MAX && thread->group_id == record->op.group;
    thread->group_cut |= cut;
    if (thread->group_calls && (thread->group_id != record->op.group || cut) &&
        operations_close_group(thread))
        return ENGINE_FAILED;
    if (thread->group_id != record->op.group)
        thread->group_cut = false;
    struct comm *comm = comm_get(event->process->analyzer, record->op.comm);
    if (!comm)
        return ENGINE_FAILED;
    struct member *member = member_get(comm, record->op.rank, thread->process);
    if (!member)
        return errno == EINVAL ? ENGINE_SKIPPED : ENGINE_FAILED;
    if (member->process != thread->process)
        return ENGINE_OK; /* a rank given twice: DC109 says so, and its calls can't be distinguished
                           */
    struct operation operation = {
        .process = thread->process,
        .thread = thread,
        .member = member,
        .record = *record,
        .site = event->site,
        .loop = loop_place_of(thread),
        .config = thread->config,
    };
    thread->config = 0;
    if (event->class == CLASS_P2P && is_no_message(comm, event))
        return ENGINE_OK;
    signature_of(record, &operation.signature);
    if (!record->op.count && !(record->op.flags & RECORD_OP_NO_COUNT) &&
        event->class == CLASS_COLLECTIVE)
        return empties_add(member, record->op.number, &operation.signature, &operation.site)
                   ? ENGINE_FAILED
                   : ENGINE_OK;
    if (!record->op.group)
        return issue(&operation) ? ENGINE_FAILED : ENGINE_OK;
    thread->group_id = record->op.group;
    return keep_for_group(thread, &operation) ? ENGINE_FAILED : ENGINE_OK;
}
