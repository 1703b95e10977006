/* emit.c: appends records and the shim's own notices to the calling thread's rings. */
#include "interpose/ring/emit.h"

#include <string.h>

#include "interpose/shim/known.h"

static struct emitted_ids strings; /* that were emitted */

void emit_forked(void)
{
    memset((void *)&strings, 0, sizeof strings);
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

bool emit(struct shim_thread *thread, const struct record *record, int ring)
{
    if (!thread->segment) {
        atomic_fetch_add_explicit(&shim.file->lost_threads, 1, memory_order_relaxed);
        return false;
    }
    uint32_t capacity = ring == RING_BULK ? shim.file->bulk_records : shim.file->control_records;
    return ring_append(&thread->segment->ring[ring], thread->records[ring], capacity, record);
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
    if (known_has(&strings, id))
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
        known_add(&strings, id);
    return id;
}
