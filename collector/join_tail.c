/* join_tail.c: keeps the last records of each process that matter to other ranks. */
#include <stdlib.h>
#include <string.h>

#include "collector/join_internal.h"
#include "lib/base/array.h"
#include "lib/trace/names.h"

enum {
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
               record->api == API_notice_collective_config || record->api == API_notice_lost ||
               record->api == API_notice_host_function ||
               record->api == API_notice_host_function_end;
    case CLASS_LAUNCH: /* a host function may itself wait, and its stream waits for it */
        return record->api == API_cudaLaunchHostFunc || record->api == API_cudaStreamAddCallback;
    default:
        return false;
    }
}

/* Where a rank stands that others wait for, perhaps in no call: its main thread, and those that
 * make calls. Others of a process are many. */
static bool shows_where(const struct record *record)
{
    return record->api == API_notice_thread_stack &&
           record->standing.flags & (RECORD_THREAD_MAIN | RECORD_THREAD_CALLS);
}

/* What was done by when, and until when all is known: live, the hub's questions have one answer for
 * all of that. */
static bool shows_when(const struct record *record)
{
    return record->api == API_notice_tick || record->api == API_notice_progress;
}

static int tail_grow(struct join_process *process, uint32_t capacity)
{
    struct record *grown = malloc(capacity * sizeof *grown);
    uint64_t *phase = malloc(capacity * sizeof *phase);
    if (!grown || !phase) {
        free(grown);
        free(phase);
        return -1;
    }
    for (uint64_t at = process->first; at < process->end; at++) {
        grown[at % capacity] = *join_tail_record(process, at);
        phase[at % capacity] = process->phase[at % process->capacity];
    }
    free(process->tail);
    free(process->phase);
    process->tail = grown;
    process->phase = phase;
    process->capacity = capacity;
    return 0;
}

static int tail_append(struct join_process *process, const struct record *record, uint64_t phase)
{
    uint64_t held = process->end - process->first;
    if (held == process->capacity && process->capacity < process->most) {
        uint32_t capacity = process->capacity ? 2 * process->capacity : TAIL_LEAST;
        if (capacity > process->most)
            capacity = process->most;
        if (tail_grow(process, capacity))
            return -1;
    } else if (held == process->capacity) {
        process->first++;
    }
    process->phase[process->end % process->capacity] = phase;
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
    if (!ARRAY_ADD(text->piece, text->pieces))
        return -1;
    text->piece[text->pieces++] = *record;
    return 0;
}

static int note_thread_call(struct join_process *process, const struct record *record,
                            uint64_t phase)
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
    if (record->phase == RECORD_ENTER)
        thread->phase = thread->last_phase = phase;
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
    if (!ARRAY_ADD(process->stream, process->streams))
        return -1;
    process->stream[process->streams++] = *record;
    return 0;
}

int join_tail_feed(struct join_process *process, const struct record *record, uint64_t phase)
{
    uint64_t text = text_id_of(record);
    if (text)
        return keep_text(process, text, record);
    if (record->api == API_notice_progress && note_slot(process, record))
        return -1;
    if (record->api == API_notice_lost)
        process->lost = *record;
    if (!matters(record) && !shows_where(record) && !(process->keeps_ticks && shows_when(record)))
        return 0;
    if (record->phase != RECORD_POINT && note_thread_call(process, record, phase))
        return -1;
    if ((api_class_of(record->api) == CLASS_STREAM || record->api == API_notice_stream) &&
        note_stream(process, record))
        return -1;
    return tail_append(process, record, phase);
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
    free(process->phase);
    free(process->tail);
}
