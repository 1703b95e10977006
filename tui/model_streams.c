/* model_streams.c: the streams of a process: what was put on each last, and the operation in which
 * it stands. */
#include <stdlib.h>

#include "lib/base/text.h"
#include "lib/base/rankset.h"
#include "lib/trace/names.h"
#include "tui/members.h"
#include "tui/view.h"

enum { EVENTS = 100000, WORDS = 10, STREAMS_MAX = 64, CALL_BYTES = 160, RANKS_BYTES = 64 };

struct stream {
    uint64_t handle;
    int device;
    char last[CALL_BYTES];
    bool stands; /* in `operation`, the earliest on it that is not done */
    char operation[CALL_BYTES];
    const struct tui_comm *comm;
    const struct member_state *member;
    uint64_t number;
};

struct streams {
    struct stream stream[STREAMS_MAX];
    int count;
};

static struct stream *stream_of(struct streams *streams, uint64_t handle, int device)
{
    for (int i = 0; i < streams->count; i++)
        if (streams->stream[i].handle == handle && streams->stream[i].device == device)
            return &streams->stream[i];
    if (streams->count == STREAMS_MAX)
        return NULL;
    struct stream *stream = &streams->stream[streams->count++];
    *stream = (struct stream){.handle = handle, .device = device};
    return stream;
}

/* Latest first, so that of the operations that are not done the earliest is left. */
static void take(struct streams *streams, const struct members *members, const struct cursor *row)
{
    struct record record = {.api = (uint16_t)cursor_number(row, 2),
                            .flags = (uint8_t)cursor_number(row, 3),
                            .phase = RECORD_ENTER};
    for (int i = 0; i < WORDS; i++)
        record.word[i] = (uint64_t)cursor_number(row, 4 + i);
    struct stream *stream =
        stream_of(streams, (uint64_t)cursor_number(row, 0), (int)cursor_number(row, 1));
    if (!stream)
        return;
    if (!*stream->last)
        record_text(&record, stream->last, sizeof stream->last);
    if (api_class_of(record.api) != CLASS_COLLECTIVE)
        return;
    const struct tui_comm *comm = members_comm(members, record.op.comm, 0);
    const struct member_state *member =
        comm && comm->id == record.op.comm ? members_rank(comm, record.op.rank) : NULL;
    if (!member || member->done > record.op.number)
        return;
    stream->stands = true;
    stream->comm = comm;
    stream->member = member;
    stream->number = record.op.number;
    record_text(&record, stream->operation, sizeof stream->operation);
}

/* The ranks that have not called the operation. */
static void add_absent(const struct stream *stream, struct text *text)
{
    struct rankset absent = {0};
    char ranks[RANKS_BYTES];
    for (int i = 0; i < stream->comm->members; i++)
        if (stream->comm->member[i].issued <= stream->number)
            rankset_add(&absent, stream->comm->member[i].shown_rank);
    int count = rankset_count(&absent);
    if (count)
        text_add(text, ", for rank%s %s, which %s not called it", count == 1 ? "" : "s",
                 rankset_brief(&absent, ranks, sizeof ranks), count == 1 ? "has" : "have");
    rankset_free(&absent);
}

static void add_stream(const struct stream *stream, struct rows *rows)
{
    if (stream->handle)
        row_set(rows_add(rows, (uint64_t)rows->count, 1), 0, TONE_PLAIN,
                "stream 0x%llx on device %d, last %s", (unsigned long long)stream->handle,
                stream->device, stream->last);
    else
        row_set(rows_add(rows, (uint64_t)rows->count, 1), 0, TONE_PLAIN,
                "default stream of device %d, last %s", stream->device, stream->last);
    if (!stream->stands)
        return;
    struct text text = {0};
    bool started = stream->member->started > stream->number;
    text_add(&text, "%s %s #%llu of %s",
             !started                ? "has not reached"
             : stream->member->ended ? "was in"
                                     : "waits in",
             stream->operation, (unsigned long long)stream->number, stream->comm->member->label);
    add_absent(stream, &text);
    char *said = text_take(&text);
    struct row *row = rows_add(rows, (uint64_t)rows->count, 2);
    row_set(row, 0, started ? TONE_WARNING : TONE_PLAIN, "%s", said ? said : "");
    if (row)
        row->target = (struct target){.view = VIEW_SEQUENCE,
                                      .comm = stream->comm->id,
                                      .number = stream->number,
                                      .process = -1};
    free(said);
}

/* The database of a process, and its number there. False if it has none. */
static bool place_of(struct source *source, int process, int *database, int *there)
{
    for (*database = 0; *database < trace_database_count(source->trace); ++*database)
        for (*there = 0; *there < trace_process_count(source->trace); ++*there)
            if (trace_process_of(source->trace, *database, *there) == process)
                return true;
    return false;
}

int model_rank_streams(struct source *source, const struct query *query,
                       const struct members *members, struct rows *rows, struct error *err)
{
    static const char sql[] =
        "SELECT stream, device, api, flags, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9 FROM event "
        "WHERE seq > (SELECT max(seq) - ?1 FROM event) AND process = ?2 AND phase < 2 AND api IN "
        "(SELECT number FROM api "
        "WHERE class IN ('collective', 'p2p', 'copy', 'launch') "
        "OR name IN ('cudaEventRecord', 'cudaEventRecordWithFlags', 'cudaStreamWaitEvent')) ORDER "
        "BY seq DESC";
    struct streams streams = {.count = 0};
    int database, there, result;
    if (!place_of(source, query->process, &database, &there))
        return 0;
    const int64_t parameter[] = {EVENTS, there};
    struct cursor row = cursor_new(source->trace, sql, parameter, 2);
    row.database = database - 1;
    while ((result = cursor_next(&row, err)) == 1 && row.database == database)
        take(&streams, members, &row);
    if (result < 0)
        return -1;
    cursor_end(&row);
    row_set(rows_add(rows, (uint64_t)rows->count, 0), 0, TONE_STRONG, "Streams%s",
            streams.count ? "" : ": nothing was put on one");
    for (int i = 0; i < streams.count; i++)
        add_stream(&streams.stream[i], rows);
    return 0;
}
