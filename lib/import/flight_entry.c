/* flight_entry.c: reads one entry of a Flight Recorder dump and maps it to an NCCL call. */
#include "lib/import/flight_entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/trace/kind_names.h"

static const struct field_name {
    const char *name;
    size_t bytes;
} field_names[] = {
#define FIELD(name) {#name, sizeof #name - 1},
#include "lib/import/flight_fields.def"
#undef FIELD
};

/* A dictionary with such fields has less than FIELDS of them, and those of versions to come. */
enum { PAIRS_MAX = 4 * FIELDS };

static int find_field(const struct text_value *text)
{
    size_t bytes = text->count;
    while (bytes && text->bytes[bytes - 1] == '_')
        bytes--;
    for (int i = 0; i < FIELDS; i++)
        if (field_names[i].bytes == bytes && !memcmp(field_names[i].name, text->bytes, bytes))
            return i;
    return -1;
}

/* Which field a dictionary's key is; -1 none. Keys of hand-made dumps may end in '_'. */
static int flight_field(const struct value *key)
{
    if (key->kind != VALUE_TEXT)
        return -1;
    if (!key->text->meaning) {
        int field = find_field(key->text);
        key->text->meaning = field < 0 ? -1 : field + 1;
    }
    return key->text->meaning < 0 ? -1 : key->text->meaning - 1;
}

void flight_fields(const struct list_value *dict, const struct value *to[FIELDS])
{
    memset(to, 0, FIELDS * sizeof *to);
    for (uint32_t i = 0; i + 1 < dict->count && i < 2 * PAIRS_MAX; i += 2) {
        int field = flight_field(&dict->item[i]);
        if (field >= 0 && dict->item[i + 1].kind != VALUE_NONE)
            to[field] = &dict->item[i + 1];
    }
}

/* "nccl:send 1->2": the sender is on the left of "->", the receiver of "<-". */
static void read_peers(const char *text, struct flight_entry *entry)
{
    int left, right;
    if (sscanf(text, "%d->%d", &left, &right) == 2) {
        entry->source = left;
        entry->destination = right;
    } else if (sscanf(text, "%d<-%d", &left, &right) == 2) {
        entry->source = right;
        entry->destination = left;
    }
}

/* "nccl:ALLGATHER_coalesced", "nccl:recv 12<-3": names are short. */
enum { COALESCED_BYTES = 9, DURATION_MOST_MS = 1000000000, NAME_BYTES_MAX = 256 };

static const struct kind_name *read_entry_name(const struct value *name, struct flight_entry *entry)
{
    if (!name || name->kind != VALUE_TEXT)
        return NULL;
    const struct text_value *text = name->text;
    if (text->count > NAME_BYTES_MAX)
        return NULL;
    const char *colon = memchr(text->bytes, ':', text->count);
    size_t begin = colon ? (size_t)(colon - text->bytes) + 1 : 0;
    const char *space = memchr(text->bytes + begin, ' ', text->count - begin);
    size_t end = space ? (size_t)(space - text->bytes) : text->count;
    const struct kind_name *operation =
        kind_name_find(KIND_FLIGHT, text->bytes + begin, end - begin);
    if (!operation) { /* "nccl:coalesced", "nccl:ALLGATHER_coalesced" */
        entry->is_coalesced =
            end - begin >= COALESCED_BYTES &&
            !memcmp(text->bytes + end - COALESCED_BYTES, "coalesced", COALESCED_BYTES);
        return NULL;
    }
    if (space) {
        char peers[48];
        snprintf(peers, sizeof peers, "%.*s", (int)(text->count - end - 1), space + 1);
        read_peers(peers, entry);
    }
    return operation;
}

static int64_t integer_of(const struct value *value, int64_t otherwise)
{
    int64_t integer;
    return value && value_integer(value, &integer) ? integer : otherwise;
}

/* Of milliseconds; 0 for what is no duration. */
static uint64_t nanoseconds_of(const struct value *value)
{
    int64_t integer = integer_of(value, 0);
    double ms = value && value->kind == VALUE_FLOAT ? value->number : (double)integer;
    return ms > 0 && ms < DURATION_MOST_MS ? (uint64_t)(1e6 * ms) : 0;
}

static enum import_state read_entry_state(const struct value *state)
{
    if (!state || value_is(state, "scheduled"))
        return state ? IMPORT_ISSUED : IMPORT_STATE_UNKNOWN;
    if (value_is(state, "started"))
        return IMPORT_STARTED;
    return value_is(state, "completed") ? IMPORT_DONE : IMPORT_STATE_UNKNOWN;
}

const struct value *flight_first_text(const struct value *value)
{
    if (value && value->kind == VALUE_LIST)
        value = value->list->count ? &value->list->item[0] : NULL;
    return value && value->kind == VALUE_TEXT ? value : NULL;
}

bool flight_entry_read(const struct value *value, struct flight_entry *entry)
{
    *entry = (struct flight_entry){.source = -1, .destination = -1};
    if (value->kind != VALUE_DICT)
        return false;
    flight_fields(value->list, entry->field);
    const struct kind_name *operation = read_entry_name(entry->field[FIELD_profiling_name], entry);
    entry->api = operation ? operation->api : API_NONE;
    entry->is_p2p = entry->api == API_ncclSend || entry->api == API_ncclRecv ||
                    integer_of(entry->field[FIELD_is_p2p], 0);
    entry->seq = integer_of(entry->field[FIELD_collective_seq_id],
                            integer_of(entry->field[FIELD_seq_id], -1));
    entry->p2p_seq = integer_of(entry->field[FIELD_p2p_seq_id], -1);
    entry->record = integer_of(entry->field[FIELD_record_id], -1);
    entry->state = read_entry_state(entry->field[FIELD_state]);
    /* Gloo has no events: its operations stay "scheduled", and are retired when they are over. */
    const struct value *name = entry->field[FIELD_profiling_name];
    bool is_gloo = name && name->kind == VALUE_TEXT && name->text->count > 5 &&
                   !memcmp(name->text->bytes, "gloo:", 5);
    if (is_gloo && integer_of(entry->field[FIELD_retired], 0))
        entry->state = IMPORT_DONE;
    int64_t created = integer_of(entry->field[FIELD_time_created_ns], 0);
    entry->created_ns = created > 0 ? (uint64_t)created : 0;
    entry->duration_ns = nanoseconds_of(entry->field[FIELD_duration_ms]);
    return true;
}

enum { DIMENSIONS_MAX = 64 }; /* of a tensor: dim_bitset_size of ATen/WrapDimUtilsMulti.h */

/* Elements of one tensor: [3, 4]; -1 if it is no list of numbers. */
static int64_t elements_of(const struct value *sizes)
{
    int64_t elements = 1, size;
    if (sizes->list->count > DIMENSIONS_MAX)
        return -1;
    for (uint32_t i = 0; i < sizes->list->count; i++)
        if (!value_integer(&sizes->list->item[i], &size) || size < 0 ||
            __builtin_mul_overflow(elements, size, &elements))
            return -1;
    return elements;
}

static uint64_t sum_elements(const struct value *sizes)
{
    int64_t sum = 0, elements;
    if (sizes->list->item[0].kind != VALUE_LIST)
        return (elements = elements_of(sizes)) < 0 ? IMPORT_UNKNOWN : (uint64_t)elements;
    for (uint32_t i = 0; i < sizes->list->count; i++)
        if (sizes->list->item[i].kind != VALUE_LIST ||
            (elements = elements_of(&sizes->list->item[i])) < 0 ||
            __builtin_add_overflow(sum, elements, &sum))
            return IMPORT_UNKNOWN;
    return (uint64_t)sum;
}

/* Of all tensors: [[3, 4], [5]], or of one alone: [3, 4]. Counted once, since rows of a pickle can
 * share a list. */
static uint64_t all_elements(const struct value *sizes)
{
    if (!sizes || sizes->kind != VALUE_LIST || !sizes->list->count)
        return IMPORT_UNKNOWN;
    if (!sizes->list->meaning)
        sizes->list->meaning = sum_elements(sizes) + 2; /* IMPORT_UNKNOWN: 1 */
    return sizes->list->meaning - 2;
}

static enum kind_elements elements_counted(const struct flight_entry *entry)
{
    struct flight_entry ignored;
    const struct kind_name *operation =
        read_entry_name(entry->field[FIELD_profiling_name], &ignored);
    return operation ? (enum kind_elements)operation->elements : KIND_OF_UNSAID;
}

uint64_t flight_entry_count(const struct flight_entry *entry)
{
    switch (elements_counted(entry)) {
    case KIND_OF_IN:
        return all_elements(entry->field[FIELD_input_sizes]);
    case KIND_OF_OUT:
        return all_elements(entry->field[FIELD_output_sizes]);
    default:
        return IMPORT_UNKNOWN;
    }
}

static uint8_t side_datatype(const struct value *types, unsigned *factor)
{
    *factor = 1;
    if (types && types->kind == VALUE_LIST)
        types = types->list->count ? &types->list->item[0] : NULL;
    if (!types || types->kind != VALUE_TEXT)
        return TYPE_NONE;
    return datatype_of_torch(types->text->bytes, types->text->count, factor);
}

uint8_t flight_entry_datatype(const struct flight_entry *entry, unsigned *factor)
{
    bool of_out = elements_counted(entry) == KIND_OF_OUT;
    return side_datatype(entry->field[of_out ? FIELD_output_dtypes : FIELD_input_dtypes], factor);
}

/* How many times as many elements the input and the output of the call have as one rank's part;
 * false where that is not known. */
static bool parts_of_sides(enum api api, int nranks, uint64_t *in, uint64_t *out)
{
    *in = *out = 1;
    if (api == API_ncclAllReduce || api == API_ncclBroadcast || api == API_ncclReduce)
        return true;
    if (api == API_ncclAllGather)
        *out = (uint64_t)nranks;
    else if (api == API_ncclReduceScatter)
        *in = (uint64_t)nranks;
    else
        return false;
    return nranks > 0;
}

bool flight_entry_is_unlike(const struct flight_entry *entry, int nranks)
{
    unsigned factor;
    uint64_t in_parts, out_parts;
    if (elements_counted(entry) == KIND_OF_UNSAID ||
        !parts_of_sides(entry->api, nranks, &in_parts, &out_parts))
        return false;
    uint64_t in = all_elements(entry->field[FIELD_input_sizes]),
             out = all_elements(entry->field[FIELD_output_sizes]);
    uint8_t in_type = side_datatype(entry->field[FIELD_input_dtypes], &factor),
            out_type = side_datatype(entry->field[FIELD_output_dtypes], &factor);
    return (in != IMPORT_UNKNOWN && out != IMPORT_UNKNOWN && in * out_parts != out * in_parts) ||
           (in_type != TYPE_NONE && out_type != TYPE_NONE && in_type != out_type);
}

uint32_t flight_drop_repeated(struct list_value *entries)
{
    uint32_t kept = 0, count = entries->count;
    for (uint32_t i = 0; i < count; i++) {
        const struct value *entry = &entries->item[i];
        if (entry->kind == VALUE_DICT && entry->list->meaning)
            continue;
        if (entry->kind == VALUE_DICT)
            entry->list->meaning = true;
        entries->item[kept++] = *entry;
    }
    entries->count = kept;
    return count - kept;
}
