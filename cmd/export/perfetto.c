/* Perfetto's protobuf trace: the timeline of chrome.c in a tenth of the bytes. Packets are only
 * appended, so that a file that was cut off opens up to there. Field numbers are those of
 * Perfetto's public protos (trace_packet.proto and what it includes); tests/export/perfetto.proto
 * holds the same ones. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "cmd/export/comms.h"
#include "cmd/export/export.h"
#include "cmd/export/protobuf.h"
#include "cmd/export/timeline.h"
#include "cmd/export/tracks.h"
#include "lib/trace/names.h"

enum { TRACE_PACKET = 1 };
enum {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60
};
enum { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum {
    EVENT_CATEGORY = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_FLOW = 47
};
enum slice { SLICE_BEGIN = 1, SLICE_END = 2, SLICE_INSTANT = 3 };
enum {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_PARENT = 5,
    PROCESS_PID = 1,
    PROCESS_NAME = 6
};
enum {
    ANNOTATION_NAME = 1,
    ANNOTATION_UINT = 3,
    ANNOTATION_INT = 4,
    ANNOTATION_POINTER = 7,
    ANNOTATION_TEXT = 17
};
enum { INTERNED_IID = 1, INTERNED_VALUE = 2 };
/* Fields of InternedData; each numbers its entries for itself. */
enum table {
    TABLE_CATEGORY = 1,
    TABLE_NAME = 2,
    TABLE_ANNOTATION = 3,
    TABLE_TEXT = 29,
    TABLES = 30
};

enum { SEQUENCE = 1, INTERNED_MOST = 65536, TEXT_BYTES = 256 };

static const uint64_t tracks_from = UINT64_C(1)
                                    << 32; /* uuids of tracks; those of processes are below */

struct interned_name {
    char *key; /* the table's number and the text */
    uint64_t iid;
    UT_hash_handle hh;
};

struct perfetto_writer {
    const struct export *export;
    struct export_names names;
    struct tracks tracks;
    struct interned_name *interned;
    uint64_t iids;
    bool cleared; /* the next packet says that nothing is interned yet */
    struct protobuf packet, event, part, entry, tables;
    bool failed;
};

static void forget_interned(struct perfetto_writer *writer)
{
    struct interned_name *interned, *next;
    HASH_ITER(hh, writer->interned, interned, next) {
        HASH_DEL(writer->interned, interned);
        free(interned->key);
        free(interned);
    }
    writer->cleared = true;
}

/* The number of a text, reported to the reader with the packet at hand if it is new. */
static uint64_t intern(struct perfetto_writer *writer, enum table table, const char *text)
{
    char key[TEXT_BYTES + 4];
    struct interned_name *interned;
    snprintf(key, sizeof key, "%c%.*s", (char)table, TEXT_BYTES, text);
    HASH_FIND_STR(writer->interned, key, interned);
    if (interned)
        return interned->iid;
    interned = calloc(1, sizeof *interned);
    if (!interned || !(interned->key = strdup(key))) {
        free(interned);
        writer->failed = true;
        return 0;
    }
    interned->iid = ++writer->iids;
    HASH_ADD_KEYPTR(hh, writer->interned, interned->key, strlen(interned->key), interned);
    protobuf_number(&writer->entry, INTERNED_IID, interned->iid);
    protobuf_text(&writer->entry, INTERNED_VALUE, key + 1);
    protobuf_message(&writer->tables, table, &writer->entry);
    return interned->iid;
}

/* Ends the packet: `field` holds `content`. */
static void put_packet(struct perfetto_writer *writer, uint64_t time_ns, int field,
                       struct protobuf *content)
{
    if (time_ns)
        protobuf_number(&writer->packet, PACKET_TIMESTAMP, time_ns);
    protobuf_number(&writer->packet, PACKET_SEQUENCE, SEQUENCE);
    protobuf_number(&writer->packet, PACKET_FLAGS,
                    writer->cleared ? FLAG_STATE_CLEARED | FLAG_NEEDS_STATE : FLAG_NEEDS_STATE);
    writer->cleared = false;
    if (writer->tables.bytes)
        protobuf_message(&writer->packet, PACKET_INTERNED, &writer->tables);
    protobuf_message(&writer->packet, field, content);
    writer->failed |= writer->packet.failed;
    protobuf_write(&writer->packet, TRACE_PACKET, writer->export->out);
    if (HASH_COUNT(writer->interned) > INTERNED_MOST)
        forget_interned(writer);
}

static void put_packet_process(struct perfetto_writer *writer, int process)
{
    const struct export_process *named = &writer->names.process[process];
    protobuf_number(&writer->part, PROCESS_PID, (uint64_t)named->pid);
    protobuf_text(&writer->part, PROCESS_NAME, named->name);
    protobuf_number(&writer->event, TRACK_UUID, (uint64_t)process + 1);
    protobuf_message(&writer->event, TRACK_PROCESS, &writer->part);
    put_packet(writer, 0, PACKET_TRACK, &writer->event);
}

static void put_track(struct perfetto_writer *writer, uint64_t uuid, int process, const char *name)
{
    protobuf_number(&writer->event, TRACK_UUID, uuid);
    protobuf_text(&writer->event, TRACK_NAME, name);
    protobuf_number(&writer->event, TRACK_PARENT, (uint64_t)process + 1);
    put_packet(writer, 0, PACKET_TRACK, &writer->event);
}

static uint64_t stream_track(struct perfetto_writer *writer, int process, const struct record *call)
{
    bool is_new;
    char name[96];
    struct track *track = tracks_operation(&writer->tracks, process, call, &is_new);
    const struct export_comm *comm = names_comm(&writer->names, call->op.comm);
    writer->failed |= !track;
    if (track && is_new) {
        snprintf(name, sizeof name, "%s, rank %d, GPU %d, stream 0x%" PRIx64,
                 comm ? comm->name : "no communicator", call->op.rank, call->device, call->stream);
        put_track(writer, tracks_from + (uint64_t)track->number, process, name);
    }
    return track ? tracks_from + (uint64_t)track->number : 0;
}

static uint64_t thread_track(struct perfetto_writer *writer, int process, uint32_t thread)
{
    bool is_new;
    char name[48];
    struct track *track = tracks_thread(&writer->tracks, process, thread, &is_new);
    writer->failed |= !track;
    if (track && is_new) {
        snprintf(name, sizeof name, "host thread %" PRIu32, thread);
        put_track(writer, tracks_from + (uint64_t)track->number, process, name);
    }
    return track ? tracks_from + (uint64_t)track->number : 0;
}

static void annotate_number(struct perfetto_writer *writer, const char *name, int kind,
                            uint64_t value)
{
    protobuf_number(&writer->part, ANNOTATION_NAME, intern(writer, TABLE_ANNOTATION, name));
    protobuf_number(&writer->part, kind, value);
    protobuf_message(&writer->event, EVENT_ANNOTATION, &writer->part);
}

static void annotate_text(struct perfetto_writer *writer, const char *name, const char *value)
{
    protobuf_number(&writer->part, ANNOTATION_NAME, intern(writer, TABLE_ANNOTATION, name));
    protobuf_number(&writer->part, ANNOTATION_TEXT, intern(writer, TABLE_TEXT, value));
    protobuf_message(&writer->event, EVENT_ANNOTATION, &writer->part);
}

static void annotate_operation(struct perfetto_writer *writer,
                               const struct timeline_operation *operation)
{
    const struct record *call = operation->call;
    const struct export_comm *comm = names_comm(&writer->names, call->op.comm);
    int nranks = comm ? comm->nranks : 0;
    annotate_text(writer, "Collective name", kineto_collective(call->api));
    annotate_text(writer, "dtype", kineto_dtype(call->op.datatype));
    if (!(call->op.flags & RECORD_OP_NO_COUNT)) {
        annotate_number(writer, "In msg nelems", ANNOTATION_UINT, kineto_in(call, nranks));
        annotate_number(writer, "Out msg nelems", ANNOTATION_UINT, kineto_out(call, nranks));
    }
    annotate_number(writer, "Group size", ANNOTATION_INT, (uint64_t)nranks);
    annotate_text(writer, "Process Group Name", comm ? comm->hex : "");
    annotate_text(writer, "Process Group Ranks", comm ? comm->ranks : "[]");
    annotate_number(writer, "Rank", ANNOTATION_INT,
                    (uint64_t)(int64_t)names_rank(&writer->names, operation->process, call));
    annotate_number(writer, "Seq", ANNOTATION_UINT, call->op.number);
    if (call->op.root >= 0)
        annotate_number(writer,
                        call->api == API_ncclSend   ? "Dst Rank"
                        : call->api == API_ncclRecv ? "Src Rank"
                                                    : "Root",
                        ANNOTATION_INT, (uint64_t)call->op.root);
    if (call->op.redop != REDOP_NONE && call->op.redop != REDOP_UNKNOWN)
        annotate_text(writer, "Reduction", redop_name(call->op.redop));
    annotate_number(writer, "stream", ANNOTATION_POINTER, call->stream);
    annotate_text(writer, "State", timeline_state(operation));
}

static void put_slice(struct perfetto_writer *writer, enum slice type, uint64_t track,
                      const char *category, const char *name)
{
    protobuf_number(&writer->event, EVENT_TYPE, type);
    protobuf_number(&writer->event, EVENT_TRACK, track);
    if (category)
        protobuf_number(&writer->event, EVENT_CATEGORY, intern(writer, TABLE_CATEGORY, category));
    if (name)
        protobuf_number(&writer->event, EVENT_NAME, intern(writer, TABLE_NAME, name));
}

/* The same on all ranks of one operation: Perfetto draws arrows between slices of one flow, in the
 * order of time. */
static uint64_t hash_flow(const struct record *call)
{
    bool is_p2p = kind_has(call->api, KIND_TO_PEER), is_send = is_p2p && !kind_receives(call->api);
    int32_t sender = is_send ? call->op.rank : call->op.root;
    int32_t receiver = is_send ? call->op.root : call->op.rank;
    uint64_t pair = is_p2p ? (uint64_t)sender << 32 | (uint32_t)receiver : 0;
    uint64_t hash = call->op.comm;
    const uint64_t words[] = {call->op.number, pair, is_p2p};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

static void put_packet_operation(void *context, const struct timeline_operation *operation)
{
    struct perfetto_writer *writer = context;
    const struct record *call = operation->call;
    uint64_t track = stream_track(writer, operation->process, call);
    const char *name = api_name(call->api);
    put_slice(writer, SLICE_BEGIN, track, "nccl", !strncmp(name, "nccl", 4) ? name + 4 : name);
    annotate_operation(writer, operation);
    protobuf_fixed64(&writer->event, EVENT_FLOW, hash_flow(call));
    put_packet(writer, operation->begin_ns, PACKET_EVENT, &writer->event);
    if (!operation->end_ns)
        return;
    put_slice(writer, SLICE_END, track, NULL, NULL);
    put_packet(writer, operation->end_ns, PACKET_EVENT, &writer->event);
}

static void put_packet_begin(void *context, int process, uint32_t thread, uint64_t time_ns,
                             const struct record *record)
{
    struct perfetto_writer *writer = context;
    char text[TEXT_BYTES];
    bool is_range = api_class_of(record->api) == CLASS_RANGE;
    const char *name =
        is_range ? trace_string(writer->export->report->trace, process, record->range.text)
                 : record_text(record, text, sizeof text);
    uint64_t track = thread_track(writer, process, thread);
    put_slice(writer, SLICE_BEGIN, track, is_range ? "user_annotation" : "cuda_runtime",
              name ? name : "range");
    put_packet(writer, time_ns, PACKET_EVENT, &writer->event);
}

static void put_packet_end(void *context, int process, uint32_t thread, uint64_t time_ns)
{
    struct perfetto_writer *writer = context;
    uint64_t track = thread_track(writer, process, thread);
    put_slice(writer, SLICE_END, track, NULL, NULL);
    put_packet(writer, time_ns, PACKET_EVENT, &writer->event);
}

static void put_packet_finding(void *context, const struct finding *finding)
{
    struct perfetto_writer *writer = context;
    for (int i = 0; i < finding->sides; i++) {
        const struct finding_side *side = &finding->side[i];
        if (side->process < 0)
            continue;
        put_slice(writer, SLICE_INSTANT, (uint64_t)side->process + 1, "finding",
                  code_name(finding->code));
        annotate_text(writer, "what", finding->what);
        annotate_text(writer, "call", side->call);
        annotate_text(writer, "where", side->where);
        put_packet(writer, side->since_ns ? side->since_ns : finding->first_ns, PACKET_EVENT,
                   &writer->event);
    }
}

int export_perfetto(const struct export *export, struct error *err)
{
    struct perfetto_writer writer = {.export = export, .cleared = true};
    const struct timeline_visitor visitor = {
        .context = &writer,
        .processes = trace_process_count(export->report->trace),
        .operation = put_packet_operation,
        .begin = put_packet_begin,
        .end = put_packet_end};
    if (names_load(&writer.names, export->report, err))
        return -1;
    for (int i = 0; i < writer.names.processes; i++)
        put_packet_process(&writer, i);
    report_visit_findings(export->report, FINDING_OPEN, put_packet_finding, &writer);
    int result = timeline_read(export->paths, export->path_count, &visitor, err);
    if (result == 0 && writer.failed)
        result = error_memory(err, "can't write the timeline");
    forget_interned(&writer);
    struct protobuf *const messages[] = {&writer.packet, &writer.event, &writer.part, &writer.entry,
                                         &writer.tables};
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++)
        protobuf_free(messages[i]);
    tracks_free(&writer.tracks);
    names_free(&writer.names);
    return result;
}
