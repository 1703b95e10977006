/* flight_recorder.c: dumps of PyTorch's Flight Recorder, one file per rank: pickles of versions 1.1 to 2.10, and JSON.
 *
 * A dump holds the last operations of a rank (a ring: 2,000 by default), so sequences begin anywhere; they are lined up by
 * collective_seq_id. Calls that were coalesced share one, and a row "coalesced" behind them, which alone says
 * how far they got. The rank stands in the file's name only. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/flight_entry.h"

enum {
    FILE_MAX_BYTES = 1 << 30, FILE_FIRST_BYTES = 1 << 20, NAME_BYTES = 1024, GROUPS_MAX = 1 << 16, FRAMES_MAX = 128,
    MAJOR_MAX = 2
};

/* A process group of the rank. */
struct group {
    const char *name;           /* texts of the dump, not NUL-terminated */
    uint32_t name_bytes;
    const int *rank;            /* global ranks by rank in the group; NULL not known */
    int nranks;                 /* -1: not known */
    int member;                 /* the sink's; -1: not a member */
    int own;                    /* the rank's place in it */
    int64_t id;                 /* pg_id; -1 not known */
    bool has_p2p;
    int64_t seq;                /* of the last collective, and how many it was so far */
    uint32_t parts;
    struct {                    /* the coalesced row met last, from the end of the list on */
        bool open, has_calls, is_p2p;       /* is_p2p: as its calls are; the row does not tell */
        int64_t seq, p2p_seq;
        uint64_t number;
        enum import_state state;
    } coalesced;
};

struct dump {
    struct import *import;
    struct import_input *input;
    struct arena arena;
    const struct value *field[FIELDS];
    char job[NAME_BYTES];       /* the file's name without the rank: ranks with one of these belong together */
    int rank, process, world_size;
    struct group *group;
    uint32_t groups, group_capacity;
    uint64_t last_ns;
    bool has_coalesced;
    struct error *err;
};

/* What was found out from the end of the list on: how an entry's group ended. */
struct fate {
    enum import_state state;
    uint64_t group;             /* 0: not coalesced */
};

static int failed(const struct dump *dump, const char *why)
{
    return error_set(dump->err, "%s: %s", input_path(dump->input), why);
}

/* ---- the file */

static bool has(const struct import_head *head, const char *text)
{
    return memmem(head->bytes, head->count, text, strlen(text));
}

static int sniff(const struct import_head *head)
{
    const unsigned char *bytes = (const unsigned char *)head->bytes;
    bool is_named = has(head, "profiling_name") || has(head, "pg_config") || has(head, "pg_status");
    if (head->count > 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5)
        return is_named || has(head, "version") ? 95 : 40;      /* no other format is a pickle */
    size_t at = 0;
    while (at < head->count && isspace(bytes[at]))
        at++;
    return at < head->count && bytes[at] == '{' && is_named && !has(head, "traceEvents") ? 80 : 0;
}

static int read_all(const struct dump *dump, char **bytes, size_t *count)
{
    size_t capacity = FILE_FIRST_BYTES;
    *count = 0;
    *bytes = malloc(capacity);
    while (*bytes) {
        long got = input_read(dump->input, *bytes + *count, capacity - *count, dump->err);
        if (got <= 0)
            return (int)got;
        *count += (size_t)got;
        if (*count < capacity)
            continue;
        if (capacity >= FILE_MAX_BYTES)
            return failed(dump, "it is larger than 1 GiB: no Flight Recorder dump is");
        char *grown = realloc(*bytes, capacity *= 2);
        if (!grown)
            return failed(dump, "memory is short");
        *bytes = grown;
    }
    return failed(dump, "memory is short");
}

/* "…/nccl_trace_rank_12", also with .json, .pkl, .gz behind it. */
static int rank_of_name(struct dump *dump)
{
    static const char *const endings[] = {".gz", ".zst", ".json", ".pkl", ".pickle"};
    char *name = dump->job;
    if (snprintf(name, sizeof dump->job, "%s", input_path(dump->input)) >= (int)sizeof dump->job)
        return failed(dump, "its name is too long");
    size_t length = strlen(name);
    for (size_t i = 0; i < 2 * sizeof endings / sizeof *endings; i++) {
        size_t bytes = strlen(endings[i / 2]);
        if (length > bytes && !strcmp(name + length - bytes, endings[i / 2]))
            name[length -= bytes] = 0;
    }
    size_t digits = length;
    while (digits && isdigit((unsigned char)name[digits - 1]))
        digits--;
    int64_t rank = -1;
    if (digits < length && length - digits < 8)
        rank = atoi(name + digits);
    else if (!dump->field[FIELD_rank] || !value_integer(dump->field[FIELD_rank], &rank))
        return failed(dump, "which rank it is of stands in its name only, and that ends in no number: name it as PyTorch does, "
                            "..._rank_0, ..._rank_1");
    name[digits] = 0;
    dump->rank = (int)rank;
    return 0;
}

/* ---- process groups */

static struct group *group_find(struct dump *dump, const char *name, uint32_t bytes)
{
    for (uint32_t i = 0; i < dump->groups; i++)
        if (dump->group[i].name_bytes == bytes && !memcmp(dump->group[i].name, name, bytes))
            return &dump->group[i];
    return NULL;
}

static struct group *group_add(struct dump *dump, const char *name, uint32_t bytes)
{
    struct group *group = group_find(dump, name, bytes);
    if (group || dump->groups == GROUPS_MAX)
        return group;
    if (dump->groups == dump->group_capacity) {
        uint32_t capacity = dump->group_capacity ? 2 * dump->group_capacity : 16;
        struct group *grown = arena_take(&dump->arena, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        if (dump->groups)
            memcpy(grown, dump->group, dump->groups * sizeof *grown);
        dump->group = grown;
        dump->group_capacity = capacity;
    }
    group = &dump->group[dump->groups++];
    *group = (struct group){.name = name, .name_bytes = bytes, .nranks = -1, .member = -1, .own = -1, .id = -1, .seq = -1};
    return group;
}

/* "[0, 1, 2]", or a list of numbers. */
static int read_ranks(struct dump *dump, const struct value *value, struct group *group)
{
    bool is_text = value && value->kind == VALUE_TEXT;
    if (!value || (!is_text && value->kind != VALUE_LIST))
        return 0;
    uint32_t most = is_text ? value->text->count / 2 + 1 : value->list->count;
    int *rank = arena_take(&dump->arena, ((size_t)most + 1) * sizeof *rank);
    if (!rank)
        return failed(dump, "memory is short");
    int count = 0;
    for (uint32_t i = 0; is_text && i < value->text->count; i++) {
        if (!isdigit((unsigned char)value->text->bytes[i]))
            continue;
        int number = 0;
        for (; i < value->text->count && isdigit((unsigned char)value->text->bytes[i]); i++)
            number = number < INT32_MAX / 10 - 1 ? 10 * number + (value->text->bytes[i] - '0') : number;
        rank[count++] = number;
    }
    for (uint32_t i = 0; !is_text && i < value->list->count; i++) {
        int64_t number;
        if (value_integer(&value->list->item[i], &number) && number >= 0 && number < INT32_MAX)
            rank[count++] = (int)number;
    }
    if (!count)
        return 0;
    group->rank = rank;
    group->nranks = count;
    return 0;
}

static uint64_t hash_ranks(const struct group *group)
{
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < group->nranks; i++)
        hash = (hash ^ (uint64_t)(uint32_t)group->rank[i]) * 1099511628211u;
    return hash;
}

/* Groups of one name and other ranks are others: subgroups that each rank makes of itself share names. */
static int join(struct dump *dump, struct group *group)
{
    char name[NAME_BYTES + 512];
    group->own = group->rank ? -1 : dump->rank;
    for (int i = 0; i < group->nranks && group->own < 0; i++)
        if (group->rank[i] == dump->rank)
            group->own = i;
    if (group->own < 0)
        return 0;
    snprintf(name, sizeof name, "Flight Recorder %s group %.*s %016llx", dump->job, (int)(group->name_bytes < 256 ? group->name_bytes : 256),
             group->name, group->rank ? (unsigned long long)hash_ranks(group) : 0);
    struct import_member member = import_member_new();
    member.comm = name;
    member.rank = group->own;
    member.nranks = group->nranks;
    group->member = import_member(dump->import, dump->process, &member);
    return group->member < 0 ? -1 : 0;
}

static int read_groups(struct dump *dump)
{
    const struct value *config = dump->field[FIELD_pg_config], *field[FIELDS];
    if (!config || config->kind != VALUE_DICT)
        return 0;
    for (uint32_t i = 0; i + 1 < config->list->count; i += 2) {
        const struct value *key = &config->list->item[i], *told = &config->list->item[i + 1];
        if (told->kind != VALUE_DICT)
            continue;
        flight_fields(told->list, field);
        const struct value *name = key->kind == VALUE_TEXT ? key : field[FIELD_name] ? field[FIELD_name] : field[FIELD_pg_name];
        char number[24];
        int64_t integer;
        if ((!name || name->kind != VALUE_TEXT) && value_integer(key, &integer)) {
            struct value made;      /* version 1.2 has numbers for keys */
            snprintf(number, sizeof number, "%lld", (long long)integer);
            char *kept = arena_take(&dump->arena, sizeof number);
            if (!kept || value_text(&dump->arena, strcpy(kept, number), strlen(number), &made))
                return failed(dump, "memory is short");
            struct group *group = group_add(dump, made.text->bytes, made.text->count);
            if (!group || read_ranks(dump, field[FIELD_ranks], group))
                return group ? -1 : failed(dump, "memory is short, or it has too many process groups");
            continue;
        }
        if (!name || name->kind != VALUE_TEXT || !name->text->count)
            continue;           /* Gloo tells of one group, under no name */
        struct group *group = group_add(dump, name->text->bytes, name->text->count);
        if (!group)
            return failed(dump, "memory is short, or it has too many process groups");
        if (read_ranks(dump, field[FIELD_ranks], group))
            return -1;
    }
    return 0;
}

/* ---- entries */

static const struct value *first_text(const struct value *value)
{
    if (value && value->kind == VALUE_LIST)
        value = value->list->count ? &value->list->item[0] : NULL;
    return value && value->kind == VALUE_TEXT ? value : NULL;
}

/* The group of an entry: by its name, by pg_id where there is no name. */
static struct group *group_of(struct dump *dump, const struct flight_entry *entry)
{
    const struct value *name = first_text(entry->field[FIELD_process_group]);
    int64_t id = -1;
    if (!name)
        name = first_text(entry->field[FIELD_pg_name]);
    if (entry->field[FIELD_pg_id])
        value_integer(entry->field[FIELD_pg_id], &id);
    struct group *group;
    if (name) {
        group = group_add(dump, name->text->bytes, name->text->count);
    } else {
        char text[24], *kept = arena_take(&dump->arena, sizeof text);
        snprintf(text, sizeof text, "%lld", (long long)(id < 0 ? 0 : id));
        group = kept ? group_add(dump, strcpy(kept, text), (uint32_t)strlen(text)) : NULL;
    }
    if (group && id >= 0)
        group->id = id;
    return group;
}

/* Messages and collectives are counted apart, and a row has the numbers of both: the collective before a batch of
 * messages has the row's number, too. */
static bool is_of_row(const struct group *group, const struct flight_entry *entry)
{
    if (!group->coalesced.open || (group->coalesced.has_calls && group->coalesced.is_p2p != entry->is_p2p))
        return false;
    int64_t seq = entry->is_p2p ? entry->p2p_seq : entry->seq;
    return seq >= 0 && seq == (entry->is_p2p ? group->coalesced.p2p_seq : group->coalesced.seq);
}

/* Looks from the end on, since the row that says how coalesced calls ended comes behind them. */
static int find_fates(struct dump *dump, const struct list_value *entries, struct fate *fate)
{
    uint64_t number = 0;
    for (uint32_t i = entries->count; i-- > 0;) {
        struct flight_entry entry;
        fate[i] = (struct fate){0};
        if (!flight_entry_read(&entries->item[i], &entry))
            continue;
        struct group *group = group_of(dump, &entry);
        if (!group)
            return failed(dump, "memory is short, or it has too many process groups");
        if (entry.is_coalesced) {
            group->coalesced.open = true;
            group->coalesced.has_calls = false;
            group->coalesced.seq = entry.seq;
            group->coalesced.p2p_seq = entry.p2p_seq;
            group->coalesced.state = entry.state;
            group->coalesced.number = ++number;
        } else if (is_of_row(group, &entry)) {
            group->coalesced.has_calls = true;
            group->coalesced.is_p2p = entry.is_p2p;
            fate[i] = (struct fate){group->coalesced.state, group->coalesced.number};
        } else {
            group->coalesced.open = false;
        }
    }
    return 0;
}

/* Without coalesced calls each entry speaks for itself. */
static int read_fates(struct dump *dump, const struct list_value *entries, struct fate *fate)
{
    for (uint32_t i = 0; i < entries->count; i++)
        fate[i] = (struct fate){IMPORT_STATE_UNKNOWN, 0};
    return dump->has_coalesced ? find_fates(dump, entries, fate) : 0;
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
    *frame = (struct import_frame){file->text->bytes, function->text->bytes, file->text->count, function->text->count,
                                   line > 0 ? (uint32_t)line : 0};
    return 0;
}

static uint64_t stack_of(struct dump *dump, const struct value *frames)
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

static uint64_t time_of(const struct value *value)
{
    int64_t time;
    return value && value_integer(value, &time) && time > 0 ? (uint64_t)time : 0;
}

static void note_times(struct dump *dump, const struct flight_entry *entry)
{
    const uint64_t times[] = {
        entry->created_ns, time_of(entry->field[FIELD_time_discovered_started_ns]),
        time_of(entry->field[FIELD_time_discovered_completed_ns]),
    };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (dump->last_ns < times[i])
            dump->last_ns = times[i];
    /* One that was given up before it was done had its time. */
    int64_t timeout, retired = 0;
    if (entry->field[FIELD_retired])
        value_integer(entry->field[FIELD_retired], &retired);
    if (retired && entry->state != IMPORT_DONE && entry->field[FIELD_timeout_ms] && entry->created_ns &&
        value_integer(entry->field[FIELD_timeout_ms], &timeout) && timeout > 0 && timeout < (int64_t)86400 * 1000 * 30 &&
        dump->last_ns < entry->created_ns + (uint64_t)timeout * 1000000)
        dump->last_ns = entry->created_ns + (uint64_t)timeout * 1000000;
}

static int refuse_entry(struct dump *dump, uint32_t index, const struct flight_entry *entry, const char *why)
{
    const struct value *name = first_text(entry->field[FIELD_profiling_name]);
    import_refuse(dump->import, "%s: entry %u (%.*s) is left out: %s", input_path(dump->input), index,
                  name ? (int)(name->text->count < 80 ? name->text->count : 80) : 7, name ? name->text->bytes : "no name", why);
    return 0;
}

static int add_call(struct dump *dump, struct group *group, const struct flight_entry *entry, const struct fate *fate, uint32_t index)
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
    call.stack = stack_of(dump, entry->field[FIELD_frames]);
    if (entry->api == API_ncclSend || entry->api == API_ncclRecv) {
        call.root = entry->api == API_ncclSend ? entry->destination : entry->source;
        return call.root < 0 ? refuse_entry(dump, index, entry, "it does not say between which ranks") : import_call(dump->import, &call);
    }
    if (entry->seq < 0)
        return refuse_entry(dump, index, entry, "it has no collective_seq_id");
    group->parts = group->seq == entry->seq ? group->parts + 1 : 0;
    group->seq = entry->seq;
    call.number = (uint64_t)entry->seq;
    call.part = group->parts;
    return import_call(dump->import, &call);
}

static int add_entry(struct dump *dump, const struct value *value, const struct fate *fate, uint32_t index)
{
    struct flight_entry entry;
    if (!flight_entry_read(value, &entry)) {
        import_refuse(dump->import, "%s: entry %u is left out: it is no dictionary", input_path(dump->input), index);
        return 0;
    }
    note_times(dump, &entry);
    if (entry.is_coalesced)
        return 0;
    struct group *group = group_of(dump, &entry);
    if (!group)
        return failed(dump, "memory is short, or it has too many process groups");
    group->has_p2p |= entry.is_p2p;
    if (entry.api == API_NONE)
        return refuse_entry(dump, index, &entry, "no such operation is known");
    if (group->own < 0 && !group->rank && join(dump, group))
        return -1;
    if (group->member < 0)
        return refuse_entry(dump, index, &entry, "pg_config says that the rank is none of its process group");
    return add_call(dump, group, &entry, fate, index);
}

static int read_entries(struct dump *dump)
{
    const struct value *entries = dump->field[FIELD_entries];
    if (!entries)
        return 0;               /* JSON leaves out an empty list */
    if (entries->kind != VALUE_LIST)
        return failed(dump, "\"entries\" is no list");
    struct fate *fate = arena_take(&dump->arena, ((size_t)entries->list->count + 1) * sizeof *fate);
    if (!fate)
        return failed(dump, "memory is short");
    if (read_fates(dump, entries->list, fate))
        return -1;
    for (uint32_t i = 0; i < dump->groups; i++)
        if (dump->group[i].rank && join(dump, &dump->group[i]))
            return -1;
    struct flight_entry first;
    if (entries->list->count && flight_entry_read(&entries->list->item[0], &first) && first.record > 0)
        import_process_lacks(dump->import, dump->process, LACKS_START | LACKS_P2P);     /* messages have no number of their own */
    for (uint32_t i = 0; i < entries->list->count; i++)
        if (add_entry(dump, &entries->list->item[i], &fate[i], i))
            return -1;
    return 0;
}

/* How many collectives were enqueued, also of those that the ring has forgotten. Messages are counted with them
 * in one number, so groups that have messages are left alone. */
static int read_status(struct dump *dump)
{
    const struct value *status = dump->field[FIELD_pg_status], *field[FIELDS];
    for (uint32_t i = 0; status && status->kind == VALUE_DICT && i + 1 < status->list->count; i += 2) {
        int64_t id, enqueued, completed = -1;
        if (!value_integer(&status->list->item[i], &id) || status->list->item[i + 1].kind != VALUE_DICT)
            continue;
        flight_fields(status->list->item[i + 1].list, field);
        if (!field[FIELD_last_enqueued_collective] || !value_integer(field[FIELD_last_enqueued_collective], &enqueued) || enqueued < 0)
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
static int check_version(struct dump *dump)
{
    const struct value *version = dump->field[FIELD_version];
    int first, second;
    char text[32];
    if (!version && !dump->field[FIELD_entries] && !dump->field[FIELD_pg_config])
        return failed(dump, "it is no Flight Recorder dump: it has neither version, pg_config nor entries");
    if (!version || version->kind != VALUE_TEXT)
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)version->text->count, version->text->bytes);
    if (sscanf(text, "%d.%d", &first, &second) == 2 && first > MAJOR_MAX)
        return error_set(dump->err, "%s: its version is %s, this ddpcheck reads 1.1 to 2.x", input_path(dump->input), text);
    return 0;
}

static int nccl_version_of(const struct dump *dump)
{
    const struct value *version = dump->field[FIELD_comm_lib_version] ? dump->field[FIELD_comm_lib_version] : dump->field[FIELD_nccl_version];
    int first, second, third;
    char text[32];
    if (!version || version->kind != VALUE_TEXT)
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)version->text->count, version->text->bytes);
    return sscanf(text, "%d.%d.%d", &first, &second, &third) == 3 ? 10000 * first + 100 * second + third : 0;
}

static int add_process(struct dump *dump)
{
    struct import_process process = import_process_new();
    process.rank = dump->rank;
    process.key = dump->job;
    process.nccl_version = nccl_version_of(dump);
    for (uint32_t i = 0; i < dump->groups; i++)
        if (process.world_size < dump->group[i].nranks)
            process.world_size = dump->group[i].nranks;
    dump->process = import_process(dump->import, &process);
    const char *before = dump->process < 0 ? NULL : import_process_file(dump->import, dump->process);
    if (before)
        return error_set(dump->err, "%s: rank %d of this job was read already, from %s", input_path(dump->input), dump->rank, before);
    return dump->process < 0 ? -1 : 0;
}

/* A dump does not say when it was made; its file does, unless that was copied since. Dumps are made because something is
 * late, so what is unfinished then has waited for longer than the analyzer takes for a hang. */
static uint64_t time_of_dump(const struct dump *dump)
{
    const uint64_t second_ns = 1000000000, day_ns = 86400 * second_ns;
    uint64_t written_ns = input_modified_ns(dump->input);
    return written_ns > dump->last_ns && written_ns < dump->last_ns + day_ns ? written_ns : dump->last_ns + 60 * second_ns;
}

static int read_dump(struct dump *dump, const struct value *root)
{
    if (root->kind != VALUE_DICT)
        return failed(dump, "it is no Flight Recorder dump: it holds no dictionary");
    flight_fields(root->list, dump->field);
    if (check_version(dump) || rank_of_name(dump) || read_groups(dump) || add_process(dump) || read_entries(dump) || read_status(dump))
        return -1;
    return import_known_until(dump->import, dump->process, time_of_dump(dump));
}

static int read_file(struct import *import, struct import_input *input, struct error *err)
{
    struct dump dump = {.import = import, .input = input, .rank = -1, .err = err};
    struct value root;
    char *bytes = NULL;
    size_t count;
    int result = read_all(&dump, &bytes, &count);
    if (!result) {
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
    .name = "flight-recorder", .title = "Flight Recorder",
    .lacks = LACKS_ROOT | LACKS_REDOP | LACKS_ADDRESSES | LACKS_STREAM | LACKS_CUDA | LACKS_SETUP | LACKS_MARKS | LACKS_PAYLOAD |
             LACKS_END | LACKS_DEVICE,
    .sniff = sniff, .read = read_file,
};
