/* join_tail.c: keeps the last records of each process that matter to other ranks, and writes those
 * that the hub wants. */
#include <stdlib.h>
#include <string.h>

#include "collector/join_internal.h"
#include "lib/trace/names.h"

enum {
    ANSWER_ROOM = 1 << 16, /* left in a message for what must follow a record */
    TEXT_PIECES_MAX = 64,
    TEXTS_MAX = 1 << 16, /* of a process */
    STREAMS_MAX = 4096,
    TAIL_LEAST = 256 /* records that there is room for at first */
};

struct record *join_tail_record(const struct join_process *process, uint64_t position)
{
    return &process->tail[position % process->capacity];
}

/* Calls and notices by which other ranks' waits are judged. Memory, copies and kernels are not
 * among them: hazards are the host's matter. */
static bool matters(const struct record *record)
{
    switch (api_class_of(record->api)) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
    case CLASS_GROUP:
    case CLASS_COMM:
    case CLASS_QUERY:
    case CLASS_WAIT:
    case CLASS_STREAM:
    case CLASS_EVENT:
    case CLASS_GRAPH:
        return true;
    case CLASS_NOTICE:
        return record->api == API_notice_exit || record->api == API_notice_end ||
               record->api == API_notice_exception || record->api == API_notice_stream ||
               record->api == API_notice_member || record->api == API_notice_comm_name ||
               record->api == API_notice_said || record->api == API_notice_ending ||
               record->api == API_notice_dormant || record->api == API_notice_stopped ||
               record->api == API_notice_lost;
    default:
        return false;
    }
}

/* What was done by when, and until when all is known: live, the hub's questions have one answer for
 * all of that. */
static bool shows_when(const struct record *record)
{
    return record->api == API_notice_tick || record->api == API_notice_progress;
}

static int tail_append(struct join_process *process, const struct record *record)
{
    uint64_t held = process->end - process->first;
    if (held == process->capacity && process->capacity < process->most) {
        uint32_t capacity = process->capacity ? 2 * process->capacity : TAIL_LEAST;
        if (capacity > process->most)
            capacity = process->most;
        struct record *grown = malloc(capacity * sizeof *grown);
        if (!grown)
            return -1;
        for (uint64_t at = process->first; at < process->end; at++)
            grown[at % capacity] = *join_tail_record(process, at);
        free(process->tail);
        process->tail = grown;
        process->capacity = capacity;
    } else if (held == process->capacity) {
        process->first++;
    }
    process->tail[process->end++ % process->capacity] = *record;
    return 0;
}

static uint64_t text_id_of(const struct record *record)
{
    switch (record->api) {
    case API_notice_string:
        return record->string.id;
    case API_notice_stack:
        return record->frames.id;
    case API_notice_python_stack:
        return record->python.id;
    default:
        return 0;
    }
}

static int keep_text(struct join_process *process, uint64_t id, const struct record *record)
{
    struct join_text *text;
    TABLE_FIND(process->texts, &id, text);
    if (!text) {
        if (HASH_COUNT(process->texts) == TEXTS_MAX)
            return 0;
        if (!(text = calloc(1, sizeof *text)))
            return -1;
        text->id = id;
        TABLE_ADD(process->texts, id, text);
        if (!TABLE_ADDED(text)) {
            free(text);
            return -1;
        }
    }
    for (uint32_t i = 0; i < text->pieces; i++)
        if (memcmp(text->piece[i].word, record->word, sizeof record->word) == 0)
            return 0; /* the shim forgot that it had sent it */
    if (text->pieces == TEXT_PIECES_MAX)
        return 0;
    struct record *piece = realloc(text->piece, (text->pieces + 1) * sizeof *piece);
    if (!piece)
        return -1;
    text->piece = piece;
    piece[text->pieces++] = *record;
    return 0;
}

static int note_thread_call(struct join_process *process, const struct record *record)
{
    struct join_thread *thread;
    TABLE_FIND(process->threads, &record->thread, thread);
    if (!thread) {
        if (!(thread = calloc(1, sizeof *thread)))
            return -1;
        thread->thread = record->thread;
        TABLE_ADD(process->threads, thread, thread);
        if (!TABLE_ADDED(thread)) {
            free(thread);
            return -1;
        }
    }
    thread->last = *record;
    thread->position = process->end;
    return 0;
}

static int note_slot(struct join_process *process, const struct record *record)
{
    struct join_slot *slot;
    TABLE_FIND(process->slots, &record->progress.slot, slot);
    if (!slot) {
        if (!(slot = calloc(1, sizeof *slot)))
            return -1;
        slot->slot = record->progress.slot;
        TABLE_ADD(process->slots, slot, slot);
        if (!TABLE_ADDED(slot)) {
            free(slot);
            return -1;
        }
    }
    slot->progress = *record;
    slot->position = process->end;
    return 0;
}

/* Streams that are there; those that were destroyed left nothing behind. */
static int note_stream(struct join_process *process, const struct record *record)
{
    if (record->api == API_cudaStreamDestroy) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < process->streams; i++)
            if (process->stream[i].stream != record->stream)
                process->stream[kept++] = process->stream[i];
        process->streams = kept;
        return 0;
    }
    if (process->streams == STREAMS_MAX)
        return 0;
    if (process->streams == process->stream_capacity) {
        uint32_t capacity = process->stream_capacity ? 2 * process->stream_capacity : 16;
        struct record *grown = realloc(process->stream, capacity * sizeof *grown);
        if (!grown)
            return -1;
        process->stream = grown;
        process->stream_capacity = capacity;
    }
    process->stream[process->streams++] = *record;
    return 0;
}

int join_tail_feed(struct join_process *process, const struct record *record)
{
    uint64_t text = text_id_of(record);
    if (text)
        return keep_text(process, text, record);
    if (record->api == API_notice_progress && note_slot(process, record))
        return -1;
    if (record->api == API_notice_lost)
        process->lost = *record;
    if (!matters(record) && !(process->keeps_ticks && shows_when(record)))
        return 0;
    if (record->phase != RECORD_POINT && note_thread_call(process, record))
        return -1;
    if ((api_class_of(record->api) == CLASS_STREAM || record->api == API_notice_stream) &&
        note_stream(process, record))
        return -1;
    return tail_append(process, record);
}

static void write_record(struct join *join, int number, const struct record *record)
{
    const struct item_record item = {.process = (uint32_t)number, .record = *record};
    message_add(&join->writer, ITEM_RECORD, &item);
}

static void note_frames(struct join *join, int number, const struct record *piece)
{
    for (uint32_t i = 0; i < 8 && piece->frames.offset + i < piece->frames.count; i++)
        join_note_address(join, number, piece->frames.address[i]);
}

/* A string or stack that a record names, and what it refers to, unless the hub has it. Stacks refer
 * to strings and to native stacks, these to nothing. They get the record's place: with a later one
 * of their own, what follows would be taken for as late. */
static void write_text(struct join *join, int number, uint64_t id, const struct record *named_by)
{
    struct join_process *process = join->process[number];
    struct join_text *text = NULL;
    if (id)
        TABLE_FIND(process->texts, &id, text);
    if (!text || text->sent)
        return;
    text->sent = true;
    for (uint32_t i = 0; i < text->pieces; i++) {
        struct record piece = text->piece[i];
        if (piece.api == API_notice_stack)
            note_frames(join, number, &piece);
        if (piece.api == API_notice_python_stack) {
            write_text(join, number, piece.python.native, named_by);
            for (int frame = 0; frame < 3; frame++) {
                write_text(join, number, piece.python.file[frame], named_by);
                write_text(join, number, piece.python.function[frame], named_by);
            }
        }
        piece.time_ns = named_by->time_ns;
        piece.serial = named_by->serial;
        write_record(join, number, &piece);
    }
}

/* A record behind the texts that it names. */
static void write_with_texts(struct join *join, int number, const struct record *record)
{
    if (record->flags & RECORD_FLAG_ADDRESS)
        join_note_address(join, number, record->stack);
    else
        write_text(join, number, record->stack, record);
    if (record->phase == RECORD_LEAVE)
        write_text(join, number, record->leave.text, record);
    if (record->api == API_notice_dormant)
        write_text(join, number, record->range.text, record);
    if (record->api == API_notice_comm_name || record->api == API_notice_said ||
        record->api == API_notice_exception) {
        write_text(join, number, record->range.text, record);
        write_text(join, number, record->range.domain, record);
    }
    write_record(join, number, record);
}

static void forget_sent(struct join_process *process)
{
    for (struct join_text *text = process->texts; text; text = text->hh.next)
        text->sent = false;
}

/* Where the records begin that say what is not done: the first call of an operation that is not,
 * with the group that it is of. */
static uint64_t find_start(struct join *join, const struct join_process *process, uint64_t most)
{
    uint64_t near = process->first;
    if (process->end - process->first > most)
        near = process->end - most;
    for (uint64_t at = process->first; at < near; at++) {
        const struct record *record = join_tail_record(process, at);
        if (record->phase != RECORD_ENTER || api_class_of(record->api) != CLASS_COLLECTIVE)
            continue;
        struct join_member key = {.key = {record->op.comm, record->op.rank}}, *member;
        TABLE_FIND(join->members, &key.key, member);
        if (!member || record->op.number < member->numbers.done)
            continue;
        while (record->op.group && at > process->first &&
               join_tail_record(process, at - 1)->serial >= record->op.group)
            at--;
        return at;
    }
    return near;
}

/* How many collectives a member had issued before the record at `start`. */
static uint64_t issued_before(const struct join_process *process, const struct join_member *member,
                              uint64_t start)
{
    for (uint64_t at = start; at < process->end; at++) {
        const struct record *record = join_tail_record(process, at);
        if (record->phase == RECORD_ENTER && record->op.comm == member->key.comm &&
            record->op.rank == member->key.rank && api_class_of(record->api) == CLASS_COLLECTIVE)
            return record->op.number;
    }
    return member->numbers.issued;
}

/* A member in place of the calls that made it, and how far it was. */
static void write_member(struct join *join, int number, const struct join_member *member,
                         uint64_t start)
{
    const struct join_process *process = join->process[number];
    struct record reached = {.api = API_notice_reached, .device = RECORD_NO_DEVICE};
    reached.time_ns = start < process->end ? join_tail_record(process, start)->time_ns
                                           : join->known_ns;
    if (member->made.api)
        write_record(join, number, &member->made);
    if (member->name.api)
        write_with_texts(join, number, &member->name);
    reached.reached.comm = member->key.comm;
    reached.reached.rank = (int32_t)member->key.rank;
    reached.reached.issued = issued_before(process, member, start);
    reached.reached.done = UINT64_MAX;
    if (reached.reached.issued)
        write_record(join, number, &reached);
}

/* What the records before `start` left behind: streams, members, calls that threads are in. */
static void write_before(struct join *join, int number, uint64_t start)
{
    struct join_process *process = join->process[number];
    if (process->lost.api)
        write_record(join, number, &process->lost);
    for (uint32_t i = 0; i < process->streams; i++)
        write_record(join, number, &process->stream[i]);
    for (struct join_member *member = process->members; member; member = member->process_next)
        write_member(join, number, member, start);
    for (struct join_thread *thread = process->threads; thread; thread = thread->hh.next)
        if (thread->position < start)
            write_with_texts(join, number, &thread->last);
}

static void write_progress(struct join *join, int number, uint64_t from)
{
    struct join_process *process = join->process[number];
    for (struct join_slot *slot = process->slots; slot; slot = slot->hh.next)
        if (slot->position >= from)
            write_record(join, number, &slot->progress);
}

void join_tail_write(struct join *join, const struct item_want *want)
{
    struct join_process *process = join->process[want->process];
    int number = (int)want->process;
    bool again = want->flags & WANT_AGAIN || want->from > process->end;
    uint64_t from = again ? 0 : want->from, at = from;
    if (join->writer.bytes + ANSWER_ROOM > TRANSPORT_BYTES_MAX)
        return;
    if (again || from < process->answered)
        forget_sent(process);
    uint64_t most = want->flags & WANT_FEW ? TAIL_FEW : TAIL_NEAR;
    if (from < process->first || (!(want->flags & WANT_ALL) && process->end - from > most)) {
        uint64_t start = want->flags & WANT_ALL ? process->first : find_start(join, process, most);
        at = start > from ? start : from;
    }
    if (at > from)
        write_before(join, number, at);
    while (at < process->end && join->writer.bytes + ANSWER_ROOM < TRANSPORT_BYTES_MAX)
        write_with_texts(join, number, join_tail_record(process, at++));
    if (at == process->end)
        write_progress(join, number, from);
    process->answered = at;
    const struct item_tail tail = {.process = want->process,
                                   .from = from,
                                   .to = at,
                                   .end = process->end,
                                   .known_ns = join->known_ns};
    message_add(&join->writer, ITEM_TAIL, &tail);
}

void join_tail_free(struct join_process *process)
{
    struct join_text *text, *next_text;
    HASH_ITER(hh, process->texts, text, next_text) {
        HASH_DEL(process->texts, text);
        free(text->piece);
        free(text);
    }
    struct join_thread *thread, *next_thread;
    HASH_ITER(hh, process->threads, thread, next_thread) {
        HASH_DEL(process->threads, thread);
        free(thread);
    }
    struct join_slot *slot, *next_slot;
    HASH_ITER(hh, process->slots, slot, next_slot) {
        HASH_DEL(process->slots, slot);
        free(slot);
    }
    free(process->stream);
    free(process->tail);
}
