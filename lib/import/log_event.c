/* log_event.c: parses messages of NCCL's log. */
#include "lib/import/log_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/trace/kinds.h"

enum { DIGITS_MOST = 128 };

/* The functions that make communicators name themselves at the line's beginning since 2.24. */
static const struct init_name {
    const char *name;
    uint16_t api;
} init_names[] = {
    {"ncclCommInitRank", API_ncclCommInitRank},
    {"ncclCommInitRankConfig", API_ncclCommInitRankConfig},
    {"ncclCommInitRankScalable", API_ncclCommInitRankScalable},
    {"ncclCommInitAll", API_ncclCommInitAll},
    {"ncclCommSplit", API_ncclCommSplit},
    {"ncclCommShrink", API_ncclCommShrink},
};

static uint16_t init_api(const char *name, size_t bytes)
{
    for (size_t i = 0; i < sizeof init_names / sizeof *init_names; i++)
        if (strlen(init_names[i].name) == bytes && !memcmp(init_names[i].name, name, bytes))
            return init_names[i].api;
    return API_NONE;
}

/* --- words --- */

struct word {
    const char *text;
    size_t bytes;
};

/* Also control characters: one comparison for each letter of the log. */
static inline bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

/* The next word of text[*at .. bytes); brackets around "nranks=8" and a comma behind are taken off.
 */
static bool next_log_word(const char *text, size_t bytes, size_t *at, struct word *word)
{
    size_t begin = *at, end;
    while (begin < bytes && is_blank(text[begin]))
        begin++;
    for (end = begin; end < bytes && !is_blank(text[end]);)
        end++;
    *word = (struct word){text + begin, end - begin};
    *at = end;
    return word->bytes;
}

static bool equals_word(const struct word *word, const char *text)
{
    return *text == *word->text && strlen(text) == word->bytes &&
           !memcmp(text, word->text, word->bytes);
}

/* Of a digit or a letter; -1: it is neither. */
static inline int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10 : -1;
}

/* The whole word as a number; base 16 with or without 0x, "(nil)" is 0. */
static bool to_number(const struct word *word, int base, uint64_t *value)
{
    const char *at = word->text, *end = at + word->bytes;
    bool is_negative = word->bytes && *at == '-';
    *value = 0;
    if (equals_word(word, "(nil)"))
        return true;
    at += is_negative;
    if (base == 16 && end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
        at += 2;
    if (at == end || end - at > DIGITS_MOST)
        return false;
    for (; at < end; at++) {
        int digit = digit_value(*at);
        if (digit < 0 || digit >= base || __builtin_mul_overflow(*value, (unsigned)base, value) ||
            __builtin_add_overflow(*value, (unsigned)digit, value))
            return false;
    }
    *value = is_negative ? -*value : *value;
    return true;
}

static bool to_int(const struct word *word, int *value)
{
    uint64_t number;
    if (!to_number(word, 10, &number) || (int64_t)number < INT32_MIN || (int64_t)number > INT32_MAX)
        return false;
    *value = (int)(int64_t)number;
    return true;
}

/* --- INFO --- */

enum field_kind { FIELD_HEX, FIELD_DECIMAL, FIELD_INT };
static const struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
} fields[] = {
#define FIELD(name, kind, member)                      \
    {                                                  \
        name, kind, offsetof(struct log_event, member) \
    }
    FIELD("sendbuff", FIELD_HEX, sendbuff),
    FIELD("recvbuff", FIELD_HEX, recvbuff),
    FIELD("count", FIELD_DECIMAL, count),
    FIELD("datatype", FIELD_INT, datatype),
    FIELD("op", FIELD_INT, redop),
    FIELD("root", FIELD_INT, root),
    FIELD("comm", FIELD_HEX, comm),
    FIELD("stream", FIELD_HEX, stream),
    FIELD("rank", FIELD_INT, rank),
    FIELD("globalrank", FIELD_INT, rank), /* RCCL: the rank in the communicator all the same */
    FIELD("nranks", FIELD_INT, nranks),
    FIELD("nRanks", FIELD_INT, nranks),
    FIELD("cudaDev", FIELD_INT, device),
    FIELD("busId", FIELD_HEX, bus),
    FIELD("commId", FIELD_HEX, comm_id),
    FIELD("parent", FIELD_HEX, parent),
    FIELD("splitCount", FIELD_INT, ordinal),
    FIELD("childCount", FIELD_INT, ordinal),
    FIELD("color", FIELD_INT, color),
    FIELD("key", FIELD_INT, key),
#undef FIELD
};

static bool set_field(struct log_event *event, const struct field *field, const struct word *value)
{
    char *member = (char *)event + field->offset;
    if (field->kind == FIELD_INT)
        return to_int(value, (int *)member);
    return to_number(value, field->kind == FIELD_HEX ? 16 : 10, (uint64_t *)member);
}

/* "[nranks=8]". */
static bool set_bracketed_nranks(struct log_event *event, const struct word *word)
{
    static const char begin[] = "[nranks=";
    size_t length = sizeof begin - 1;
    if (word->bytes < length + 2 || memcmp(word->text, begin, length) ||
        word->text[word->bytes - 1] != ']')
        return false;
    return to_int(&(struct word){word->text + length, word->bytes - length - 1}, &event->nranks);
}

/* Fills in every named field; the word behind a name is its value, but for "key 3- Init START". */
static void set_fields(const char *text, size_t bytes, struct log_event *event)
{
    struct word word, value;
    for (size_t at = 0; next_log_word(text, bytes, &at, &word);) {
        if (set_bracketed_nranks(event, &word))
            continue;
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
            size_t behind = at;
            if (!equals_word(&word, fields[i].name) || !next_log_word(text, bytes, &behind, &value))
                continue;
            if (value.bytes > 1 && value.text[value.bytes - 1] == '-')
                value.bytes--;
            if (set_field(event, &fields[i], &value))
                at = behind;
            break;
        }
    }
}

static bool contains(const char *text, size_t bytes, const char *what)
{
    size_t length = strlen(what);
    for (size_t at = 0; at + length <= bytes; at++)
        if (text[at] == what[0] && !memcmp(text + at, what, length))
            return true;
    return false;
}

static bool starts_with(const char *text, size_t bytes, const char *what)
{
    return bytes >= strlen(what) && !memcmp(text, what, strlen(what));
}

static struct log_event no_event(void)
{
    return (struct log_event){.datatype = -1,
                              .redop = -1,
                              .root = -1,
                              .rank = -1,
                              .nranks = -1,
                              .device = -1,
                              .ordinal = -1};
}

/* "AllReduce: opCount 5 ...", in 2.3 "opCount 5 ...". */
static bool is_operation(const char *text, size_t bytes, uint16_t *api)
{
    size_t at = 0;
    struct word word;
    *api = API_NONE;
    if (!next_log_word(text, bytes, &at, &word))
        return false;
    if (word.text[word.bytes - 1] == ':') {
        *api = kind_of_nccl(word.text, word.bytes - 1);
        return *api && next_log_word(text, bytes, &at, &word) && equals_word(&word, "opCount");
    }
    return equals_word(&word, "opCount");
}

static const struct ending {
    const char *text;
    enum log_event_kind kind;
    uint16_t api;
} endings[] = {
    {"Init START", LOG_EVENT_INIT_START, API_NONE},
    {"Init COMPLETE", LOG_EVENT_INIT_COMPLETE, API_NONE},
    {"Destroy START", LOG_EVENT_LEAVE_START, API_ncclCommDestroy},
    {"Destroy COMPLETE", LOG_EVENT_LEAVE_COMPLETE, API_ncclCommDestroy},
    {"Abort START", LOG_EVENT_LEAVE_START, API_ncclCommAbort},
    {"Abort COMPLETE", LOG_EVENT_LEAVE_COMPLETE, API_ncclCommAbort},
};

/* A line about a communicator that lost its end still names a comm and a rank; what it wanted to
 * say is not known. */
static void communicator_event(const char *text, size_t bytes, struct log_event *event)
{
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (contains(text, bytes, endings[i].text)) {
            event->kind = endings[i].kind;
            event->api = endings[i].api;
        }
    set_fields(text, bytes, event);
    if (event->kind == LOG_EVENT_NONE)
        return;
    bool init = event->kind == LOG_EVENT_INIT_START || event->kind == LOG_EVENT_INIT_COMPLETE;
    struct word word;
    for (size_t at = 0;
         init && !event->api &&
         next_log_word(text, bytes, &at, &word);) /* "[Rank 3] ncclCommInitRank comm ..." */
        event->api = init_api(word.text, word.bytes);
    if (init && !event->api)
        event->api = event->parent ? API_ncclCommSplit : API_ncclCommInitRank;
    if (!event->comm || event->rank < 0 || (init && event->nranks < 1))
        event->kind = LOG_EVENT_CUT;
}

void log_event_of_message(const char *text, size_t bytes, struct log_event *event)
{
    uint16_t api;
    *event = no_event();
    if (is_operation(text, bytes, &api)) {
        set_fields(text, bytes, event);
        event->api = api;
        event->kind = event->comm && event->nranks > 0 && event->datatype >= 0 ? LOG_EVENT_OPERATION
                                                                               : LOG_EVENT_CUT;
    } else if (contains(text, bytes, "comm 0x")) {
        communicator_event(text, bytes, event);
    }
}

/* --- CALL --- */

/* What each argument of a call is: one letter each. s sendbuff, r recvbuff, n count, t datatype, o
 * redop, R root, c comm, S stream, N nranks, i commId, k rank, d device, p parent, C color, K key,
 * . nothing of use. */
static const struct call_shape {
    const char *name, *arguments;
    enum log_event_kind kind;
    uint16_t api;
} call_shapes[] = {
    {"ncclGroupStart", "", LOG_EVENT_GROUP_START, API_ncclGroupStart},
    {"ncclGroupEnd", "", LOG_EVENT_GROUP_END, API_ncclGroupEnd},
    {"ncclCommInitRank", "cNikd", LOG_EVENT_INIT_COMPLETE, API_ncclCommInitRank},
    {"ncclCommSplit", "pCKckN", LOG_EVENT_INIT_COMPLETE, API_ncclCommSplit},
    {"ncclRedOpCreatePreMulSum", "o.t.c", LOG_EVENT_PREMULSUM, API_ncclRedOpCreatePreMulSum},
};

static bool set_argument(struct log_event *event, char what, const struct word *word)
{
    switch (what) {
    case 's':
        return to_number(word, 16, &event->sendbuff);
    case 'r':
        return to_number(word, 16, &event->recvbuff);
    case 'n':
        return to_number(word, 10, &event->count);
    case 't':
        return to_int(word, &event->datatype);
    case 'o':
        return to_int(word, &event->redop);
    case 'R':
        return to_int(word, &event->root);
    case 'c':
        return to_number(word, 16, &event->comm);
    case 'p':
        return to_number(word, 16, &event->parent);
    case 'S':
        return to_number(word, 16, &event->stream);
    case 'N':
        return to_int(word, &event->nranks);
    case 'i':
        return to_number(word, 16, &event->comm_id);
    case 'k':
        return to_int(word, &event->rank);
    case 'd':
        return to_int(word, &event->device);
    case 'C':
        return to_int(word, &event->color);
    case 'K':
        return to_int(word, &event->key);
    default:
        return true;
    }
}

/* The arguments up to the closing bracket; false if that is missing or one is no number. */
static bool set_arguments(const char *text, size_t bytes, const char *shape,
                          struct log_event *event)
{
    const char *close = memchr(text, ')', bytes);
    while (close && close > text && close[-1] == 'l' &&
           memchr(close + 1, ')', bytes - (size_t)(close + 1 - text)))
        close = memchr(close + 1, ')', bytes - (size_t)(close + 1 - text)); /* of "(nil)" */
    if (!close)
        return false;
    const char *at = text;
    for (; *shape; shape++) {
        const char *comma = memchr(at, ',', (size_t)(close - at)), *end = comma ? comma : close;
        while (at < end && *at == ' ')
            at++;
        if (!set_argument(event, *shape, &(struct word){at, (size_t)(end - at)}))
            return false;
        if (!comma)
            return !shape[1];
        at = comma + 1;
    }
    return true;
}

void log_event_of_call(const char *text, size_t bytes, struct log_event *event)
{
    *event = no_event();
    const char *open = memchr(text, '(', bytes);
    if (!open)
        return;
    size_t name_bytes = (size_t)(open - text);
    struct call_shape shape = {0};
    for (size_t i = 0; i < sizeof call_shapes / sizeof *call_shapes; i++)
        if (strlen(call_shapes[i].name) == name_bytes &&
            !memcmp(call_shapes[i].name, text, name_bytes))
            shape = call_shapes[i];
    if (!shape.name && starts_with(text, name_bytes, "nccl")) {
        shape.api = kind_of_nccl(text + 4, name_bytes - 4);
        shape.arguments = "srntoRcS";
        shape.kind = LOG_EVENT_OPERATION;
    }
    if (!shape.api)
        return;
    event->api = shape.api;
    event->kind = set_arguments(open + 1, bytes - name_bytes - 1, shape.arguments, event)
                      ? shape.kind
                      : LOG_EVENT_CUT;
}

int log_version_of(const char *text, size_t bytes)
{
    static const char begin[] = "NCCL version ";
    int major, minor, patch = 0;
    char copy[32] = "";
    if (!starts_with(text, bytes, begin))
        return 0;
    size_t rest = bytes - (sizeof begin - 1);
    memcpy(copy, text + sizeof begin - 1, rest < sizeof copy - 1 ? rest : sizeof copy - 1);
    if (sscanf(copy, "%2d.%3d.%3d", &major, &minor, &patch) < 2 || major < 1)
        return 0;
    return minor > 8 || major > 2 ? major * 10000 + minor * 100 + patch
                                  : major * 1000 + minor * 100 + patch;
}
