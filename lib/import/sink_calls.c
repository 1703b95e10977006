/* sink_calls.c: what members did: calls, how far they are, and where in the program they were made.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/secrets.h"
#include "lib/import/sink.h"
#include "lib/trace/names.h"

enum {
    PROGRESS_EVERY = 256, /* operations of a lane that are done before that is reported: memory of
                             the analyzer */
    REPORTED_FIRST = 1024,
    FRAMES_MAX = 512,
    STANDING_CAPTURE = 1, /* threads are seen once */
    STRING_MAX_BYTES = 4096
};

struct import_call import_call_new(int member, enum api api)
{
    return (struct import_call){
        .member = member,
        .api = api,
        .number = IMPORT_UNKNOWN,
        .count = IMPORT_UNKNOWN,
        .datatype = TYPE_NONE,
        .redop = REDOP_UNKNOWN,
        .root = IMPORT_NO_ROOT,
        .sendbuff = IMPORT_UNKNOWN,
        .recvbuff = IMPORT_UNKNOWN,
        .stream = IMPORT_UNKNOWN,
    };
}

static struct lane *lane_get(struct import *import, struct sink_member *member, uint64_t stream)
{
    struct lane_key key = {stream, member->index};
    struct lane *lane;
    if (member->lane && member->lane->key.stream == stream)
        return member->lane;
    HASH_FIND(hh, import->lanes, &key, sizeof key, lane);
    if (lane || !(lane = calloc(1, sizeof *lane)))
        return lane;
    lane->key = key;
    lane->slot = import->process[member->process]->slots++;
    lane->next = import->first_lane;
    import->first_lane = lane;
    HASH_ADD(hh, import->lanes, key, sizeof key, lane);
    return lane;
}

/* Where streams are not known every member has one of its own for collectives, and one for each
 * peer and direction. */
static uint64_t find_call_stream(const struct sink_member *member, const struct import_call *call)
{
    if (call->stream != IMPORT_UNKNOWN)
        return call->stream;
    uint64_t own = (uint64_t)(member->ordinal + 1) << 32;
    if (api_class_of(call->api) != CLASS_P2P)
        return own;
    return own + 1 + 2 * (uint64_t)(uint32_t)call->root + (call->api == API_ncclRecv);
}

static int emit_lane_progress(struct import *import, struct lane *lane, uint64_t time_ns)
{
    struct sink_process *process = import->process[import->member[lane->key.member]->process];
    struct record record = {.api = API_notice_progress, .device = RECORD_NO_DEVICE};
    record.progress.slot = lane->slot;
    record.progress.started = lane->reported_started = lane->started;
    record.progress.done = lane->reported_done = lane->done;
    return sink_record(import, process, time_ns, &record, 0);
}

static uint64_t next_message(struct import *import, const struct sink_member *member,
                             const struct import_call *call, bool *failed)
{
    struct lane_key key = {2 * (uint64_t)(uint32_t)call->root + (call->api == API_ncclRecv),
                           member->index};
    struct sink_peer *peer;
    HASH_FIND(hh, import->peers, &key, sizeof key, peer);
    if (!peer) {
        if (!(peer = calloc(1, sizeof *peer))) {
            *failed = true;
            return 0;
        }
        peer->key = key;
        HASH_ADD(hh, import->peers, key, sizeof key, peer);
    }
    return peer->next++;
}

static int note_parts(struct sink_comm *comm, uint64_t number, uint32_t part)
{
    struct sink_parts *parts;
    HASH_FIND(hh, comm->parts, &number, sizeof number, parts);
    if (!parts) {
        if (!(parts = calloc(1, sizeof *parts)))
            return -1;
        parts->number = number;
        HASH_ADD(hh, comm->parts, number, sizeof number, parts);
    }
    if (parts->parts < part + 1)
        parts->parts = part + 1;
    return 0;
}

/* The reader's groups have numbers of its own; ours is the serial of the first call. */
static uint64_t group_of(struct sink_process *process, uint64_t group)
{
    if (group && group != process->group)
        process->group_serial = process->serial + 1;
    process->group = group;
    return group ? process->group_serial : 0;
}

static void fill_call_record(struct record *record, const struct sink_member *member,
                             const struct import_call *call)
{
    bool has_count = call->count != IMPORT_UNKNOWN, has_root = call->root != IMPORT_NO_ROOT;
    record->op.comm = member->comm->id;
    record->op.rank = member->rank;
    record->op.sendbuff = call->sendbuff != IMPORT_UNKNOWN ? call->sendbuff : 0;
    record->op.recvbuff = call->recvbuff != IMPORT_UNKNOWN ? call->recvbuff : 0;
    record->op.count = has_count ? call->count : 0;
    record->op.datatype = call->datatype;
    record->op.redop = call->redop;
    record->op.root = has_root ? call->root : -1;
    bool has_buffers = call->sendbuff != IMPORT_UNKNOWN || call->recvbuff != IMPORT_UNKNOWN;
    record->op.flags = has_buffers ? 0 : RECORD_OP_NO_BUFFERS;
    if (!has_count) {
        record->op.flags |= RECORD_OP_NO_COUNT;
        record->op.count = call->bytes;
    }
    if (!has_root)
        record->op.flags |= RECORD_OP_NO_ROOT;
}

static int note_state(struct import *import, struct sink_member *member,
                      const struct import_call *call, struct record *record, struct lane **noted)
{
    record->op.slot = RECORD_NO_SLOT;
    if (call->state == IMPORT_STATE_UNKNOWN)
        return 0;
    struct lane *lane = *noted = lane_get(import, member, record->stream);
    if (!lane)
        return -1;
    if (api_class_of(call->api) == CLASS_COLLECTIVE)
        member->lane = lane;
    record->op.slot = lane->slot;
    record->op.launch = ++lane->launch;
    if (call->state >= IMPORT_STARTED)
        lane->started = lane->launch;
    if (call->state == IMPORT_DONE)
        lane->done = lane->launch;
    return 0;
}

int import_call(struct import *import, const struct import_call *call)
{
    struct sink_member *member = import->member[call->member];
    struct sink_process *process = import->process[member->process];
    bool is_p2p = api_class_of(call->api) == CLASS_P2P, failed = false;
    /* Before the call has its serial number and its place in the lane. */
    if (call->time_ns && sink_report_changes(import, process, call->time_ns))
        return -1;
    struct record record = {
        .api = (uint16_t)call->api,
        .phase = RECORD_ENTER,
        .flags = RECORD_FLAG_OVER,
        .thread = call->thread ? call->thread : 1,
        .device = member->device,
        .stack = call->stack,
        .stream = find_call_stream(member, call),
    };
    fill_call_record(&record, member, call);
    if (is_p2p)
        record.op.number = next_message(import, member, call, &failed);
    else
        record.op.number = call->number != IMPORT_UNKNOWN ? call->number : member->next;
    /* NCCL drops a collective of no elements: it has the number of the next (record.h). */
    bool dropped = call->number == IMPORT_UNKNOWN && call->count == 0;
    if (!is_p2p && !dropped && member->next <= record.op.number)
        member->next = record.op.number + 1;
    record.op.group = group_of(process, call->group);
    process->group_thread = record.thread;
    struct lane *lane = NULL;
    if (failed || note_state(import, member, call, &record, &lane) ||
        (call->part && !is_p2p && note_parts(member->comm, record.op.number, call->part)))
        return sink_no_memory(import);
    if (sink_record(import, process, call->time_ns, &record, is_p2p ? 0 : call->part))
        return -1;
    import->last = (struct import_launch){lane, record.op.launch};
    return lane && lane->done >= lane->reported_done + PROGRESS_EVERY
               ? emit_lane_progress(import, lane, 0)
               : 0;
}

struct import_launch import_last_launch(const struct import *import)
{
    return import->last;
}

int import_launch_state(struct import *import, struct import_launch launch, enum import_state state,
                        uint64_t time_ns)
{
    struct lane *lane = launch.lane;
    bool news = lane && (lane->started < launch.launch ||
                         (state == IMPORT_DONE && lane->done < launch.launch));
    if (!news)
        return import->failure.text[0] ? -1 : 0;
    if (lane->started < launch.launch)
        lane->started = launch.launch;
    if (state == IMPORT_DONE)
        lane->done = launch.launch;
    return emit_lane_progress(import, lane, time_ns);
}

/* A group's calls are issued together where it ends. */
static int end_group(struct import *import, struct sink_process *process)
{
    struct record record = {
        .api = API_ncclGroupEnd,
        .thread = process->group_thread,
        .device = RECORD_NO_DEVICE,
    };
    record.group.group = process->group_serial;
    record.group.depth = 1;
    return sink_record(import, process, 0, &record, 0);
}

int import_reached(struct import *import, int index, uint64_t issued, uint64_t done,
                   uint64_t time_ns)
{
    struct sink_member *member = import->member[index];
    struct record record = {.api = API_notice_reached, .device = member->device};
    record.reached.comm = member->comm->id;
    record.reached.issued = issued;
    record.reached.done = done;
    record.reached.rank = member->rank;
    struct sink_process *process = import->process[member->process];
    if (member->next < issued)
        member->next = issued;
    if (process->group && end_group(import, process)) /* else its calls would be behind it */
        return -1;
    process->group = 0;
    return sink_record(import, process, time_ns, &record, 0);
}

static uint64_t reported_key(int process, uint64_t id, char kind)
{
    uint64_t key = (id ^ ((uint64_t)(uint32_t)process << 8 | (uint8_t)kind)) * 0x9e3779b97f4a7c15u;
    key ^= key >> 32;
    return key ? key : 1;
}

static int reported_grow(struct import *import)
{
    uint64_t capacity = import->reported_capacity ? 2 * import->reported_capacity : REPORTED_FIRST;
    uint64_t *table = calloc(capacity, sizeof *table);
    if (!table)
        return -1;
    for (uint64_t i = 0; i < import->reported_capacity; i++)
        if (import->reported[i]) {
            uint64_t at = import->reported[i] & (capacity - 1);
            while (table[at])
                at = (at + 1) & (capacity - 1);
            table[at] = import->reported[i];
        }
    free(import->reported);
    import->reported = table;
    import->reported_capacity = capacity;
    return 0;
}

/* 1: it is new, and noted; 0: it was reported before; -1 when memory is short. */
static int emit_once(struct import *import, int process, uint64_t id, char kind)
{
    if (2 * import->reported_count >= import->reported_capacity && reported_grow(import))
        return sink_no_memory(import);
    uint64_t key = reported_key(process, id, kind), at = key & (import->reported_capacity - 1);
    for (; import->reported[at]; at = (at + 1) & (import->reported_capacity - 1))
        if (import->reported[at] == key)
            return 0;
    import->reported[at] = key;
    import->reported_count++;
    return 1;
}

uint64_t import_text(struct import *import, int process, const char *text, size_t bytes)
{
    if (bytes > STRING_MAX_BYTES)
        bytes = STRING_MAX_BYTES;
    uint64_t id = string_id(text, bytes);
    int fresh = emit_once(import, process, id, 's');
    if (fresh <= 0)
        return fresh ? 0 : id;
    size_t piece = sizeof((struct record *)0)->string.text, offset = 0;
    do {
        struct record record = {.api = API_notice_string, .device = RECORD_NO_DEVICE, .thread = 1};
        record.string.id = id;
        record.string.bytes = (uint32_t)bytes;
        record.string.offset = (uint32_t)offset;
        memcpy(record.string.text, text + offset, bytes - offset < piece ? bytes - offset : piece);
        if (sink_record(import, import->process[process], 0, &record, 0))
            return 0;
        offset += piece;
    } while (offset < bytes);
    return id;
}

int import_said(struct import *import, int process, enum said how, const char *who,
                const char *text, uint64_t time_ns)
{
    struct record record = {.api = API_notice_said, .device = RECORD_NO_DEVICE, .thread = 1};
    char *masked = strdup(text);
    if (!masked)
        return sink_no_memory(import);
    record.range.text = import_text(import, process, masked, secrets_mask(masked, strlen(masked)));
    free(masked);
    record.range.domain = import_text(import, process, who, strlen(who));
    record.range.id = how;
    return sink_record(import, import->process[process], time_ns, &record, 0);
}

static uint64_t hash_stack(const struct import_frame *frames, int count)
{
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < count; i++) {
        hash = (hash ^ string_id(frames[i].file, frames[i].file_bytes)) * 1099511628211u;
        hash = (hash ^ string_id(frames[i].function, frames[i].function_bytes)) * 1099511628211u;
        hash = (hash ^ frames[i].line) * 1099511628211u;
    }
    return hash ? hash : 1;
}

uint64_t import_stack(struct import *import, int process, const struct import_frame *frames,
                      int count)
{
    enum { PIECE = sizeof((struct record *)0)->python.line / sizeof(uint32_t) };
    if (count > FRAMES_MAX)
        count = FRAMES_MAX;
    if (count <= 0)
        return 0;
    uint64_t id = hash_stack(frames, count);
    int fresh = emit_once(import, process, id, 'f');
    if (fresh <= 0)
        return fresh ? 0 : id;
    for (int offset = 0; offset < count; offset += PIECE) {
        struct record record = {
            .api = API_notice_python_stack, .device = RECORD_NO_DEVICE, .thread = 1};
        record.python.id = id;
        record.python.count = (uint16_t)count;
        record.python.offset = (uint16_t)offset;
        for (int i = 0; i < PIECE && offset + i < count; i++) {
            const struct import_frame *frame = &frames[offset + i];
            record.python.line[i] = frame->line;
            record.python.file[i] = import_text(import, process, frame->file, frame->file_bytes);
            record.python.function[i] =
                import_text(import, process, frame->function, frame->function_bytes);
        }
        if (sink_record(import, import->process[process], 0, &record, 0))
            return 0;
    }
    return id;
}

/* 0 for none; *failed when memory is short. */
static uint64_t standing_text(struct import *import, int process, const char *text, bool *failed)
{
    uint64_t id = text && *text ? import_text(import, process, text, strlen(text)) : 0;
    *failed |= text && *text && !id;
    return id;
}

int import_position(struct import *import, int process, const struct import_position *position)
{
    bool failed = false;
    struct record record = {.api = API_notice_position,
                            .device = RECORD_NO_DEVICE,
                            .thread = 1,
                            .stack = position->stack};
    record.position.place = position->place;
    record.position.flags = position->moves ? POSITION_MOVES : 0;
    if (position->works)
        record.position.flags |= POSITION_WORKS;
    record.position.text = standing_text(import, process, position->text, &failed);
    record.position.lasts_s = position->lasts_s;
    return failed ? -1
                  : sink_record(import, import->process[process], position->time_ns, &record, 0);
}

int import_thread_stack(struct import *import, int process, const struct import_thread *thread)
{
    bool failed = false;
    struct record record = {.api = API_notice_thread_stack,
                            .device = RECORD_NO_DEVICE,
                            .thread = thread->id,
                            .stack = thread->stack};
    record.standing.capture = STANDING_CAPTURE;
    record.standing.thread = thread->id;
    record.standing.name = standing_text(import, process, thread->name, &failed);
    record.standing.syscall = thread->syscall;
    record.standing.index = thread->index;
    record.standing.count = thread->count;
    record.standing.holder = thread->holder;
    return failed ? -1 : sink_record(import, import->process[process], thread->time_ns, &record, 0);
}

/* A process whose time is not known gets the time of the others, rather than that of 1970. */
static void borrow_times(struct import *import)
{
    uint64_t first_ns = UINT64_MAX, until_ns = 0;
    for (int i = 0; i < import->processes; i++) {
        const struct sink_process *process = import->process[i];
        if (process->first_ns && process->first_ns < first_ns)
            first_ns = process->first_ns;
        if (process->known_until_ns != IMPORT_UNKNOWN && process->known_until_ns > until_ns)
            until_ns = process->known_until_ns;
    }
    for (int i = 0; i < import->processes; i++) {
        struct sink_process *process = import->process[i];
        if (!process->first_ns && first_ns != UINT64_MAX)
            process->first_ns = first_ns;
        if (process->known_until_ns == IMPORT_UNKNOWN)
            process->known_until_ns = until_ns;
    }
}

int sink_finish(struct import *import)
{
    int result = 0;
    borrow_times(import);
    for (int i = 0; i < import->processes && !result; i++) {
        result = sink_report_changes(import, import->process[i], UINT64_MAX);
        import->process[i]->info.lacks |= sink_lacks_durations(import->process[i]);
        if (import->process[i]->group && !result)
            result = end_group(import, import->process[i]);
    }
    for (struct lane *lane = import->first_lane; lane && !result; lane = lane->next)
        if (lane->done != lane->reported_done || lane->started != lane->reported_started)
            result = emit_lane_progress(import, lane, 0);
    for (int i = 0; i < import->processes && !result; i++) {
        struct sink_process *process = import->process[i];
        struct record record = {.api = API_notice_known, .device = RECORD_NO_DEVICE};
        result = sink_record(import, process,
                             process->known_until_ns > process->key ? process->known_until_ns : 0,
                             &record, 0);
    }
    return result;
}
