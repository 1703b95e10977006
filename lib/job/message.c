/* message.c: writes messages, and reads them without trusting them. */
#include "lib/job/message.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/invariant.h"
#include "lib/base/rankset.h"
#include "lib/trace/trace.h"

static const char message_magic[4] = {'D', 'D', 'P', 'J'};

struct message_header {
    char magic[4];
    uint16_t version, header_bytes;
    uint32_t bytes; /* of the whole message */
    uint32_t reserved;
    uint64_t sender;
};

struct item_header {
    uint16_t kind, reserved;
    uint32_t bytes; /* of the item behind this header */
};

static size_t item_bytes(unsigned kind)
{
    switch (kind) {
#define MESSAGE_ITEM(number, name, type) \
    case number:                         \
        return sizeof(struct type);
#include "lib/job/messages.def"
#undef MESSAGE_ITEM
    default:
        return 0;
    }
}

static bool writer_reserve(struct message_writer *writer, size_t bytes)
{
    return writer->bytes + bytes <= TRANSPORT_BYTES_MAX &&
           ARRAY_RESERVE(writer->data, writer->capacity, writer->bytes + bytes);
}

static void writer_begin(struct message_writer *writer)
{
    struct message_header header = {
        .version = MESSAGE_VERSION, .header_bytes = sizeof header, .sender = writer->sender};
    memcpy(header.magic, message_magic, sizeof message_magic);
    memcpy(writer->data, &header, sizeof header);
    writer->bytes = sizeof header;
}

bool message_add(struct message_writer *writer, enum item_kind kind, const void *item)
{
    size_t bytes = item_bytes(kind);
    struct item_header header = {.kind = (uint16_t)kind, .bytes = (uint32_t)bytes};
    size_t needed = (writer->bytes ? 0 : sizeof(struct message_header)) + sizeof header + bytes;
    if (!writer_reserve(writer, needed)) {
        writer->failed = true;
        return false;
    }
    if (!writer->bytes)
        writer_begin(writer);
    memcpy(writer->data + writer->bytes, &header, sizeof header);
    memcpy(writer->data + writer->bytes + sizeof header, item, bytes);
    writer->bytes += sizeof header + bytes;
    invariant(writer->bytes <= writer->capacity, "a message is inside of its room");
    const uint32_t total = (uint32_t)writer->bytes;
    memcpy(writer->data + offsetof(struct message_header, bytes), &total, sizeof total);
    return true;
}

bool message_is_empty(const struct message_writer *writer)
{
    return writer->bytes == 0;
}

void message_clear(struct message_writer *writer)
{
    writer->bytes = 0;
    writer->failed = false;
}

void message_free(struct message_writer *writer)
{
    free(writer->data);
    *writer = (struct message_writer){0};
}

/* Each item lies within the message, and one of a known kind has its kind's size. */
static int check_items(const struct message_reader *reader, struct error *err)
{
    for (size_t at = reader->next; at < reader->bytes;) {
        struct item_header header;
        if (reader->bytes - at < sizeof header)
            return error_set(err, "a message is cut off");
        memcpy(&header, reader->data + at, sizeof header);
        at += sizeof header;
        size_t expected = item_bytes(header.kind);
        if (header.bytes > reader->bytes - at)
            return error_set(err, "an item of a message is cut off");
        if (expected && header.bytes != expected)
            return error_set(err, "an item of kind %u has %u bytes instead of %zu", header.kind,
                             header.bytes, expected);
        at += header.bytes;
    }
    return 0;
}

int message_open(struct message_reader *reader, const void *data, size_t bytes, struct error *err)
{
    struct message_header header;
    *reader = (struct message_reader){.data = data, .bytes = bytes, .next = sizeof header};
    if (bytes < sizeof header)
        return error_set(err, "a message of %zu bytes is too short", bytes);
    memcpy(&header, data, sizeof header);
    if (memcmp(header.magic, message_magic, sizeof message_magic) != 0)
        return error_set(err, "what came is no message of ddpcheck");
    if (header.version != MESSAGE_VERSION)
        return error_set(
            err,
            "a message has version %u, this ddpcheck reads version %d: use one version "
            "of ddpcheck on all hosts",
            header.version, MESSAGE_VERSION);
    if (header.bytes != bytes || header.header_bytes != sizeof header)
        return error_set(err, "a message of %zu bytes says that it has %u", bytes, header.bytes);
    reader->sender = header.sender;
    return check_items(reader, err);
}

static bool text_ends(const char *text, size_t bytes)
{
    return memchr(text, 0, bytes) != NULL;
}
#define TEXT_ENDS(field) text_ends(field, sizeof(field))

static bool is_good_process(const struct item_process *process)
{
    const struct process_info *info = &process->info;
    return process->process < ITEM_PROCESSES_MAX && TEXT_ENDS(info->boot_id) &&
           TEXT_ENDS(info->host) && TEXT_ENDS(info->launcher) && TEXT_ENDS(info->job) &&
           TEXT_ENDS(info->program) && TEXT_ENDS(info->command);
}

static bool is_good_record(const struct item_record *record)
{
    return record->process < ITEM_PROCESSES_MAX && record->record.api < API_COUNT &&
           record->record.phase <= RECORD_LEAVE;
}

static bool is_good_digest(const struct item_digest *digest)
{
    return digest->process < ITEM_PROCESSES_MAX && digest->rank >= 0 && digest->comm &&
           digest->done <= digest->started && digest->started <= digest->issued &&
           digest->issued < UINT64_C(1) << 62;
}

static bool is_good_awaited(const struct item_awaited *awaited)
{
    return awaited->call.api < API_COUNT && TEXT_ENDS(awaited->kind) && TEXT_ENDS(awaited->title);
}

static bool is_good_act(const struct item_act *act)
{
    return act->call.api < API_COUNT && is_good_awaited(&act->wait) &&
           is_good_awaited(&act->behind) && TEXT_ENDS(act->did) && TEXT_ENDS(act->name) &&
           TEXT_ENDS(act->phase);
}

/* A set takes memory by its largest rank. */
static bool are_good_ranks(const char *ranks)
{
    int first, last;
    bool is_good = true;
    while (is_good && *ranks && strcmp(ranks, "none") != 0)
        is_good = rankset_take_range(&ranks, &first, &last) == 0 && last < ITEM_RANKS_MAX;
    return is_good;
}

static bool is_good_side(const struct item_side *side)
{
    return side->process >= ITEM_NO_PROCESS && side->process < ITEM_PROCESSES_MAX &&
           is_good_act(&side->act) && is_good_act(&side->now) && TEXT_ENDS(side->phase) &&
           TEXT_ENDS(side->ranks) && are_good_ranks(side->ranks);
}

static bool is_good_item(const struct message_item *item)
{
    switch (item->kind) {
    case ITEM_PROCESS:
        return is_good_process(&item->process);
    case ITEM_RECORD:
        return is_good_record(&item->record);
    case ITEM_SYMBOL:
        return item->symbol.process < ITEM_PROCESSES_MAX && TEXT_ENDS(item->symbol.module) &&
               TEXT_ENDS(item->symbol.function) && TEXT_ENDS(item->symbol.file);
    case ITEM_INLINED:
        return item->inlined.process < ITEM_PROCESSES_MAX && item->inlined.depth > 0 &&
               item->inlined.depth < ADDRESS_FRAMES_MAX && TEXT_ENDS(item->inlined.function) &&
               TEXT_ENDS(item->inlined.file);
    case ITEM_SIDE:
        return is_good_side(&item->side);
    case ITEM_FINDING:
        return TEXT_ENDS(item->finding.code) && TEXT_ENDS(item->finding.what) &&
               TEXT_ENDS(item->finding.todo);
    case ITEM_DIGEST:
        return is_good_digest(&item->digest);
    case ITEM_STATE:
        return item->state.process < ITEM_PROCESSES_MAX;
    case ITEM_WANT:
        return item->want.process < ITEM_PROCESSES_MAX;
    case ITEM_TAIL:
        return item->tail.process < ITEM_PROCESSES_MAX && item->tail.from <= item->tail.to &&
               item->tail.to <= item->tail.end;
    case ITEM_NEWS:
        return TEXT_ENDS(item->news.asked) && TEXT_ENDS(item->news.code) &&
               TEXT_ENDS(item->news.location) && TEXT_ENDS(item->news.text) &&
               TEXT_ENDS(item->news.details);
    case ITEM_VIEW:
        return item->view.page >= 1 && item->view.page <= ITEM_PAGES_MAX;
    case ITEM_IMAGE:
        return item->image.image && item->image.pages <= ITEM_PAGES_MAX &&
               item->image.next <= item->image.pages;
    case ITEM_PAGE:
        return item->page.page >= 1 && item->page.page <= ITEM_PAGES_MAX;
    case ITEM_PACE:
        return item->pace.digest_every_ns >= PACE_USUAL_NS &&
               item->pace.digest_every_ns <= PACE_MOST_NS;
    case ITEM_REPORTER:
        return item->reporter.rank >= 0;
    default:
        return true;
    }
}

int message_next(struct message_reader *reader, struct message_item *item, struct error *err)
{
    while (reader->next < reader->bytes) {
        struct item_header header;
        memcpy(&header, reader->data + reader->next, sizeof header);
        const unsigned char *payload = reader->data + reader->next + sizeof header;
        reader->next += sizeof header + header.bytes;
        invariant(reader->next <= reader->bytes,
                  "an item that was checked is inside of its message");
        if (!item_bytes(header.kind))
            continue;
        item->kind = (enum item_kind)header.kind;
        memcpy(&item->process, payload, header.bytes);
        if (!is_good_item(item))
            return error_set(err, "an item of kind %u of a message makes no sense", header.kind);
        return 1;
    }
    return 0;
}
