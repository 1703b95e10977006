/* flight_recorder.c: dumps of PyTorch's Flight Recorder, one file per rank: pickles of versions 1.1
 * to 2.10, and JSON.
 *
 * A dump holds the last operations of a rank (a ring: 2,000 by default), so sequences begin
 * anywhere; they are lined up by collective_seq_id. Calls that were coalesced share one, and a row
 * "coalesced" behind them, which alone says how far they got. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/flight_dump.h"
#include "lib/trace/kind_names.h"

enum { FILE_MAX_BYTES = 1 << 30, FRAMES_MAX = 128, MAJOR_MAX = 2 };

/* What was found out from the end of the list on: how an entry's group ended. */
struct fate {
    enum import_state state;
    uint64_t group; /* 0: not coalesced */
    struct import_lasting lasting;
};

/* ---- the file */

static bool has(const struct import_head *head, const char *text)
{
    return memmem(head->bytes, head->count, text, strlen(text));
}

static int sniff_flight(const struct import_head *head)
{
    const unsigned char *bytes = (const unsigned char *)head->bytes;
    bool is_named = has(head, "profiling_name") || has(head, "pg_config") || has(head, "pg_status");
    if (head->count > 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5)
        return is_named || has(head, "version") ? 95 : 40; /* no other format is a pickle */
    size_t at = 0;
    while (at < head->count && isspace(bytes[at]))
        at++;
    return at < head->count && bytes[at] == '{' && is_named && !has(head, "traceEvents") ? 80 : 0;
}

/* ---- entries */

/* Messages and collectives are counted apart, and a row has the numbers of both: the collective
 * before a batch of messages has the row's number, too. */
static bool is_of_row(const struct flight_group *group, const struct flight_entry *entry)
{
    if (!group->coalesced.open ||
        (group->coalesced.has_calls && group->coalesced.is_p2p != entry->is_p2p))
        return false;
    int64_t seq = entry->is_p2p ? entry->p2p_seq : entry->seq;
    return seq >= 0 && seq == (entry->is_p2p ? group->coalesced.p2p_seq : group->coalesced.seq);
}

/* The first of a row's collectives took what the row did, together with those behind it. Messages
 * to several peers may have taken less. */
static void take_row(struct flight_group *group, const struct flight_entry *entry,
                     struct fate *fate, uint32_t index)
{
    fate[index] = (struct fate){group->coalesced.state, group->coalesced.number, {0}};
    if (!entry->is_p2p)
        fate[index].lasting.duration_ns = group->coalesced.duration_ns;
    if (!entry->is_p2p && group->coalesced.has_calls)
        fate[group->coalesced.first].lasting = (struct import_lasting){.runs_with_last = true};
    group->coalesced.has_calls = true;
    group->coalesced.is_p2p = entry->is_p2p;
    group->coalesced.first = index;
}

/* Looks from the end on, since the row that says how coalesced calls ended comes behind them. */
static int find_fates(struct flight_dump *dump, const struct list_value *entries, struct fate *fate)
{
    uint64_t number = 0;
    for (uint32_t i = entries->count; i-- > 0;) {
        struct flight_entry entry;
        fate[i] = (struct fate){0};
        if (!flight_entry_read(&entries->item[i], &entry))
            continue;
        struct flight_group *group = flight_group_of(dump, &entry);
        if (!group)
            return flight_failed(dump, OUT_OF_MEMORY ", or it has too many process groups");
        if (entry.is_coalesced) {
            group->coalesced.open = true;
            group->coalesced.has_calls = false;
            group->coalesced.seq = entry.seq;
            group->coalesced.p2p_seq = entry.p2p_seq;
            group->coalesced.state = entry.state;
            group->coalesced.duration_ns = entry.duration_ns;
            group->coalesced.number = ++number;
        } else if (is_of_row(group, &entry)) {
            take_row(group, &entry, fate, i);
        } else {
            group->coalesced.open = false;
        }
    }
    return 0;
}

/* Without coalesced calls each entry speaks for itself. */
static int read_fates(struct flight_dump *dump, const struct list_value *entries, struct fate *fate)
{
    for (uint32_t i = 0; i < entries->count; i++)
        fate[i] = (struct fate){.state = IMPORT_STATE_UNKNOWN};
    return dump->has_coalesced ? find_fates(dump, entries, fate) : 0;
}

/* Of a name; one that is longer than any path (PATH_MAX) can occur in each frame of a pickle. */
static uint32_t shown_bytes(const struct text_value *text)
{
    return text->count < PATH_MAX ? text->count : PATH_MAX;
}

static int read_frame(const struct value *value, struct import_frame *frame)
{
    const struct value *field[FIELDS];
    int64_t line = 0;
    if (value->kind != VALUE_DICT)
        return -1;
    flight_fields(value->list, field);
    const struct value *file = field[FIELD_filename], *function = field[FIELD_name];
    if (!file || file->kind != VALUE_TEXT || !function || function->kind != VALUE_TEXT)
        return -1;
    if (field[FIELD_line])
        value_integer(field[FIELD_line], &line);
    *frame = (struct import_frame){file->text->bytes, function->text->bytes,
                                   shown_bytes(file->text), shown_bytes(function->text),
                                   line > 0 ? (uint32_t)line : 0};
    return 0;
}

static uint64_t add_entry_stack(struct flight_dump *dump, const struct value *frames)
{
    struct import_frame frame[FRAMES_MAX];
    int count = 0;
    if (!frames || frames->kind != VALUE_LIST)
        return 0;
    if (frames->list->meaning)
        return frames->list->meaning;
    for (uint32_t i = 0; i < frames->list->count && count < FRAMES_MAX; i++)
        if (!read_frame(&frames->list->item[i], &frame[count]))
            count++;
    return frames->list->meaning = import_stack(dump->import, dump->process, frame, count);
}

static uint64_t read_dump_time(const struct value *value)
{
    int64_t time;
    return value && value_integer(value, &time) && time > 0 ? (uint64_t)time : 0;
}

static void note_entry_times(struct flight_dump *dump, const struct flight_entry *entry)
{
    const uint64_t times[] = {
        entry->created_ns,
        read_dump_time(entry->field[FIELD_time_discovered_started_ns]),
        read_dump_time(entry->field[FIELD_time_discovered_completed_ns]),
    };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (dump->last_ns < times[i])
            dump->last_ns = times[i];
    /* One that was given up before it was done had its time. */
    int64_t timeout, retired = 0;
    if (entry->field[FIELD_retired])
        value_integer(entry->field[FIELD_retired], &retired);
    if (retired && entry->state != IMPORT_DONE && entry->field[FIELD_timeout_ms] &&
        entry->created_ns && value_integer(entry->field[FIELD_timeout_ms], &timeout) &&
        timeout > 0 && timeout < (int64_t)86400 * 1000 * 30 &&
        dump->last_ns < entry->created_ns + (uint64_t)timeout * 1000000)
        dump->last_ns = entry->created_ns + (uint64_t)timeout * 1000000;
}

static int refuse_entry(struct flight_dump *dump, uint32_t index, const struct flight_entry *entry,
                        const char *why)
{
    const struct value *name = flight_first_text(entry->field[FIELD_profiling_name]);
    const char *shown = "no name";
    int bytes = 7;
    if (name) {
        shown = name->text->bytes;
        bytes = name->text->count < 80 ? (int)name->text->count : 80;
    }
    import_refuse(dump->import, "%s: entry %u (%.*s) is left out: %s", input_path(dump->input),
                  index, bytes, shown, why);
    return 0;
}

/* No call that PyTorch takes: in dumps that were changed or made by hand. Said once a file. */
static int say_unlike_sides(struct flight_dump *dump, const struct flight_group *group,
                            const struct flight_entry *entry)
{
    char text[200];
    if (dump->said_unlike || !flight_entry_is_unlike(entry, group->nranks))
        return 0;
    dump->said_unlike = true;
    const char *name = kind_name_of(KIND_FLIGHT, entry->api);
    if (entry->api == API_ncclAllGather || entry->api == API_ncclReduceScatter)
        snprintf(text, sizeof text,
                 "the input and the output of %s #%lld do not fit: one must be %d times as large "
                 "as the other, and of the same type",
                 name, (long long)entry->seq, group->nranks);
    else
        snprintf(text, sizeof text,
                 "the input and the output of %s #%lld differ in size or type: they must be the "
                 "same",
                 name, (long long)entry->seq);
    return import_said(dump->import, dump->process, SAID_TIMEOUT, "Flight Recorder", text,
                       entry->created_ns);
}

/* With TORCH_NCCL_ENABLE_TIMING=1 an entry says how long the operation took, if it was retired. */
static int report_call(struct flight_dump *dump, const struct flight_entry *entry,
                       const struct fate *fate, const struct import_call *call)
{
    struct import_lasting lasting = fate->lasting;
    if (!fate->group)
        lasting.duration_ns = entry->duration_ns;
    return dump->has_durations ? import_lasting_call(dump->import, call, lasting)
                               : import_call(dump->import, call);
}

static int add_call(struct flight_dump *dump, struct flight_group *group,
                    const struct flight_entry *entry, const struct fate *fate, uint32_t index)
{
    unsigned factor;
    struct import_call call = import_call_new(group->member, entry->api);
    call.datatype = flight_entry_datatype(entry, &factor);
    call.count = flight_entry_count(entry);
    if (call.count != IMPORT_UNKNOWN)
        call.count *= factor;
    call.time_ns = entry->created_ns;
    call.state = fate->group ? fate->state : entry->state;
    call.group = fate->group;
    call.stack = add_entry_stack(dump, entry->field[FIELD_frames]);
    if (say_unlike_sides(dump, group, entry))
        return -1;
    if (entry->api == API_ncclSend || entry->api == API_ncclRecv) {
        call.root = entry->api == API_ncclSend ? entry->destination : entry->source;
        return call.root < 0
                   ? refuse_entry(dump, index, entry, "it does not say between which ranks")
                   : report_call(dump, entry, fate, &call);
    }
    int64_t number = flight_number_of(dump, group, entry);
    if (number < 0)
        return refuse_entry(dump, index, entry, "it has no collective_seq_id");
    group->parts = group->seq == number ? group->parts + 1 : 0;
    group->seq = number;
    call.number = (uint64_t)number;
    call.part = group->parts;
    return report_call(dump, entry, fate, &call);
}

static int add_entry(struct flight_dump *dump, const struct value *value, const struct fate *fate,
                     uint32_t index)
{
    struct flight_entry entry;
    if (!flight_entry_read(value, &entry)) {
        import_refuse(dump->import, "%s: entry %u is left out: it is no dictionary",
                      input_path(dump->input), index);
        return 0;
    }
    note_entry_times(dump, &entry);
    if (entry.is_coalesced)
        return 0;
    struct flight_group *group = flight_group_of(dump, &entry);
    if (!group)
        return flight_failed(dump, OUT_OF_MEMORY ", or it has too many process groups");
    group->has_p2p |= entry.is_p2p;
    if (entry.api == API_NONE)
        return refuse_entry(dump, index, &entry, "no such operation is known");
    if (group->own < 0 && !group->rank && flight_join(dump, group))
        return -1;
    if (group->member < 0)
        return refuse_entry(dump, index, &entry,
                            "pg_config says that the rank is none of its process group");
    return add_call(dump, group, &entry, fate, index);
}

static bool has_durations(const struct list_value *entries)
{
    struct flight_entry entry;
    for (uint32_t i = 0; i < entries->count; i++)
        if (flight_entry_read(&entries->item[i], &entry) && entry.duration_ns)
            return true;
    return false;
}

/* How far the rank got is known: TORCH_INCLUDE_ONLY_ACTIVE omits the other entries. */
static bool has_status(const struct flight_dump *dump)
{
    const struct value *status = dump->field[FIELD_pg_status], *field[FIELDS];
    int64_t enqueued = -1;
    for (uint32_t i = 1; status && status->kind == VALUE_DICT && i < status->list->count; i += 2) {
        if (status->list->item[i].kind != VALUE_DICT)
            continue;
        flight_fields(status->list->item[i].list, field);
        if (field[FIELD_last_enqueued_collective] && enqueued < 0)
            value_integer(field[FIELD_last_enqueued_collective], &enqueued);
    }
    return enqueued >= 0;
}

static int read_entries(struct flight_dump *dump)
{
    const struct value *entries = dump->field[FIELD_entries];
    bool is_empty = !entries || (entries->kind == VALUE_LIST && !entries->list->count);
    if (is_empty && !has_status(dump))
        import_refuse(dump->import,
                      "%s: it holds no operation: Flight Recorder was off (set "
                      "TORCH_NCCL_TRACE_BUFFER_SIZE=2000), or nothing was called",
                      input_path(dump->input));
    if (!entries)
        return 0; /* JSON leaves out an empty list */
    if (entries->kind != VALUE_LIST)
        return flight_failed(dump, "\"entries\" is no list");
    uint32_t repeated = flight_drop_repeated(entries->list);
    if (repeated)
        import_refuse(dump->import,
                      "%s: %u entries are left out: each is the same as one before, and a "
                      "recorder writes each once",
                      input_path(dump->input), repeated);
    struct fate *fate = arena_take(&dump->arena, ((size_t)entries->list->count + 1) * sizeof *fate);
    if (!fate)
        return flight_failed(dump, OUT_OF_MEMORY);
    if (flight_find_writer(dump, entries->list) || read_fates(dump, entries->list, fate))
        return -1;
    for (uint32_t i = 0; i < dump->groups; i++)
        if (dump->group[i].rank && flight_join(dump, &dump->group[i]))
            return -1;
    struct flight_entry first;
    if (entries->list->count && flight_entry_read(&entries->list->item[0], &first) &&
        first.record > 0)
        import_process_lacks(dump->import, dump->process,
                             LACKS_START | LACKS_P2P); /* messages have no number of their own */
    dump->has_durations = has_durations(entries->list);
    import_process_lacks(dump->import, dump->process,
                         dump->has_durations ? LACKS_STARTS : LACKS_DURATIONS);
    for (uint32_t i = 0; i < entries->list->count; i++)
        if (add_entry(dump, &entries->list->item[i], &fate[i], i))
            return -1;
    return 0;
}

/* How many collectives were enqueued, also of those that the ring has forgotten. Messages are
 * counted with them in one number, so groups that have messages are left alone. */
static int read_status(struct flight_dump *dump)
{
    const struct value *status = dump->field[FIELD_pg_status], *field[FIELDS];
    for (uint32_t i = 0; status && status->kind == VALUE_DICT && i + 1 < status->list->count;
         i += 2) {
        int64_t id, enqueued, completed = -1;
        if (!value_integer(&status->list->item[i], &id) ||
            status->list->item[i + 1].kind != VALUE_DICT)
            continue;
        flight_fields(status->list->item[i + 1].list, field);
        if (!field[FIELD_last_enqueued_collective] ||
            !value_integer(field[FIELD_last_enqueued_collective], &enqueued) || enqueued < 0)
            continue;
        if (field[FIELD_last_completed_collective])
            value_integer(field[FIELD_last_completed_collective], &completed);
        for (uint32_t k = 0; k < dump->groups; k++)
            if (dump->group[k].id == id && dump->group[k].member >= 0 && !dump->group[k].has_p2p &&
                import_reached(dump->import, dump->group[k].member, (uint64_t)enqueued + 1,
                               completed >= 0 ? (uint64_t)completed + 1 : IMPORT_UNKNOWN, 0))
                return -1;
    }
    return 0;
}

/* ---- the whole */

/* "2.10" is two numbers. Newer minors only add. */
static int check_dump_version(struct flight_dump *dump)
{
    const struct value *version = dump->field[FIELD_version];
    int first, second;
    char text[32];
    if (!version && !dump->field[FIELD_entries] && !dump->field[FIELD_pg_config])
        return flight_failed(
            dump, "it is no Flight Recorder dump: it has neither version, pg_config nor entries");
    if (!version || version->kind != VALUE_TEXT)
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)version->text->count, version->text->bytes);
    if (sscanf(text, "%d.%d", &first, &second) == 2 && first > MAJOR_MAX)
        return error_set(dump->err, "%s: its version is %s, this ddpcheck reads 1.1 to 2.x",
                         input_path(dump->input), text);
    return 0;
}

static int nccl_version_of(const struct flight_dump *dump)
{
    const struct value *version = dump->field[FIELD_comm_lib_version]
                                      ? dump->field[FIELD_comm_lib_version]
                                      : dump->field[FIELD_nccl_version];
    int first, second, third;
    char text[32];
    if (!version || version->kind != VALUE_TEXT)
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)version->text->count, version->text->bytes);
    return sscanf(text, "%d.%d.%d", &first, &second, &third) == 3
               ? 10000 * first + 100 * second + third
               : 0;
}

static int add_flight_process(struct flight_dump *dump)
{
    struct import_process process = import_process_new();
    process.rank = dump->rank;
    process.key = dump->job;
    process.nccl_version = nccl_version_of(dump);
    for (uint32_t i = 0; i < dump->groups; i++)
        if (process.world_size < dump->group[i].nranks)
            process.world_size = dump->group[i].nranks;
    dump->process = import_process(dump->import, &process);
    const char *before = dump->process < 0 ? NULL
                                           : import_process_file(dump->import, dump->process);
    if (before)
        return error_set(dump->err, "%s: rank %d of this job was read already, from %s",
                         input_path(dump->input), dump->rank, before);
    return dump->process < 0 ? -1 : 0;
}

/* A dump does not say when it was made; its file does, unless that was copied since. Dumps are made
 * because something is late, so what is unfinished then has waited for longer than the analyzer
 * takes for a hang. */
static uint64_t time_of_dump(const struct flight_dump *dump)
{
    const uint64_t second_ns = 1000000000, day_ns = 86400 * second_ns;
    uint64_t written_ns = input_modified_ns(dump->input);
    return written_ns > dump->last_ns && written_ns < dump->last_ns + day_ns
               ? written_ns
               : dump->last_ns + 60 * second_ns;
}

static int read_dump(struct flight_dump *dump, const struct value *root)
{
    if (root->kind != VALUE_DICT)
        return flight_failed(dump, "it is no Flight Recorder dump: it holds no dictionary");
    flight_fields(root->list, dump->field);
    if (check_dump_version(dump) || flight_parse_rank(dump) || flight_find_job(dump) ||
        flight_read_groups(dump) || add_flight_process(dump) || read_entries(dump) ||
        read_status(dump))
        return -1;
    uint64_t until_ns = dump->last_ns ? time_of_dump(dump) : IMPORT_UNKNOWN;
    return import_known_until(dump->import, dump->process, until_ns);
}

static int read_flight_file(struct import *import, struct import_input *input, struct error *err)
{
    struct flight_dump dump = {.import = import, .input = input, .rank = -1, .err = err};
    struct value root;
    size_t count;
    char *bytes = input_whole(input, FILE_MAX_BYTES, &count, err);
    int result = bytes ? 0 : -1;
    if (bytes) {
        bool is_pickle = count && (unsigned char)bytes[0] == 0x80;
        dump.has_coalesced = memmem(bytes, count, "coalesced", 9) != NULL;
        result = (is_pickle ? pickle_read : json_tree_read)(&dump.arena, bytes, count, &root, err);
        if (result)
            error_prefix(err, "%s", input_path(input));
        else
            result = read_dump(&dump, &root);
    }
    free(bytes);
    arena_free(&dump.arena);
    return result;
}

const struct import_source import_source_flight_recorder = {
    .name = "flight-recorder",
    .title = "Flight Recorder",
    .lacks = LACKS_ROOT | LACKS_REDOP | LACKS_ADDRESSES | LACKS_STREAM | LACKS_CUDA | LACKS_SETUP |
             LACKS_MARKS | LACKS_PAYLOAD | LACKS_END | LACKS_DEVICE,
    .sniff = sniff_flight,
    .read = read_flight_file,
    .end = flight_forget_jobs,
};
