/* emit.c: appends records and the shim's own notices to the calling thread's rings. */
#include "interpose/ring/emit.h"

#include <string.h>

#include "interpose/ring/files.h"
#include "interpose/ring/segments.h"
#include "interpose/shim/forget.h"
#include "interpose/shim/known.h"
#include "lib/base/secrets.h"

static struct {
    struct emitted_ids strings;     /* that were emitted */
    _Atomic uint32_t members_given; /* of the entries of the ring file */
} emitted;

void emit_forked(void)
{
    forget_state(&emitted, sizeof emitted);
}

const uint8_t emit_class_of[API_COUNT] = {
#define API(number, name, class) [number] = CLASS_##class,
#include "lib/trace/apis.def"
#undef API
};

static void prepare_notice(struct shim_thread *thread, struct record *record, uint16_t api,
                           enum record_phase phase)
{
    emit_name(thread, record, api, phase);
    emit_stamp(record);
}

void emit_late(struct shim_thread *thread, struct record *record)
{
    record->thread = thread->id;
    emit_stamp(record);
    emit(thread, record, emit_ring(record->api));
}

/* Whether the end of a job is understood without older records of this class. */
static bool can_be_spared(enum api_class class)
{
    switch (class) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
    case CLASS_GROUP:
    case CLASS_WAIT:
    case CLASS_QUERY:
    case CLASS_EVENT:
    case CLASS_MEMORY:
        return true;
    default:
        return false;
    }
}

/* A ring that overflows grows if it can. */
static bool append_control(struct ring_writer *writer, const struct record *record, bool spared)
{
    struct ring_end *end = &writer->end[RING_CONTROL];
    if (ring_append_below(end, ring_control_limit(end, spared), record) ||
        (segments_grow(writer, RING_CONTROL) &&
         ring_append_below(end, ring_control_limit(end, spared), record)))
        return true;
    segments_append_newest(writer, record);
    return false;
}

static bool append_bulk(struct ring_writer *writer, const struct record *record)
{
    struct ring_end *end = &writer->end[RING_BULK];
    if (ring_append_below(end, end->capacity, record))
        return true;
    segments_grow(writer, RING_BULK);
    return ring_append(end, record);
}

bool emit(struct shim_thread *thread, const struct record *record, int ring)
{
    if (!thread->writer) {
        atomic_fetch_add_explicit(&shim.file->lost_threads, 1, memory_order_relaxed);
        return false;
    }
    if (ring == RING_CONTROL)
        return append_control(thread->writer, record, can_be_spared(emit_class(record->api)));
    return append_bulk(thread->writer, record);
}

/* The member's entry in the ring file, made at its first collective. Of two threads that make one
 * at once both are good. NULL if there is no room. */
static struct ring_member *find_state(struct local_member *member)
{
    struct ring_member *members = ring_members(shim.file, files_hash_entries());
    uint32_t index = atomic_load_explicit(&member->state, memory_order_relaxed);
    if (index)
        return &members[index - 1];
    if (atomic_load_explicit(&emitted.members_given, memory_order_relaxed) >= RING_MEMBERS)
        return NULL;
    index = atomic_fetch_add_explicit(&emitted.members_given, 1, memory_order_relaxed);
    if (index >= RING_MEMBERS)
        return NULL;
    struct ring_member *state = &members[index];
    state->comm = member->comm;
    state->rank = member->rank;
    atomic_store_explicit(&state->ready, 1, memory_order_release);
    atomic_fetch_add_explicit(&shim.file->member_next, 1, memory_order_release);
    atomic_store_explicit(&member->state, index + 1, memory_order_relaxed);
    return state;
}

void emit_issued(struct local_member *member)
{
    struct ring_member *state = member->rank >= 0 ? find_state(member) : NULL;
    if (state)
        ring_member_issued(state, atomic_load_explicit(&member->number, memory_order_relaxed));
}

bool emit_notice(struct shim_thread *thread, struct record *record, enum api api)
{
    prepare_notice(thread, record, (uint16_t)api, RECORD_POINT);
    return emit(thread, record, RING_CONTROL);
}

bool emit_notice_on(struct shim_thread *thread, struct record *record, enum api api, int32_t device)
{
    prepare_notice(thread, record, (uint16_t)api, RECORD_POINT);
    record->device = (int16_t)device;
    return emit(thread, record, RING_CONTROL);
}

uint64_t emit_string(struct shim_thread *thread, const char *text, uint64_t bytes)
{
    uint64_t id = string_id(text, bytes);
    if (known_has(&emitted.strings, id))
        return id;
    bool appended = true;
    uint64_t offset = 0;
    do {
        struct record record = {
            .string = {.id = id, .bytes = (uint32_t)bytes, .offset = (uint32_t)offset}};
        uint64_t piece = bytes - offset < sizeof record.string.text ? bytes - offset
                                                                    : sizeof record.string.text;
        memcpy(record.string.text, text + offset, piece);
        appended &= emit_notice(thread, &record, API_notice_string);
        offset += piece;
    } while (offset < bytes);
    if (appended)
        known_add(&emitted.strings, id);
    return id;
}

uint64_t emit_said(struct shim_thread *thread, char *text, uint64_t bytes)
{
    return emit_string(thread, text, secrets_mask(text, bytes));
}
