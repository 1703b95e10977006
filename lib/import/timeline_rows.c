/* timeline_rows.c: rows of a timeline as they are read: which columns there are, and what a row's
 * texts mean. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/array.h"
#include "lib/import/timeline.h"

enum { SECONDS = 9, MILLISECONDS = 6, MICROSECONDS = 3, NANOSECONDS = 0, AS_START = -1 };

static const struct {
    const char *name;
    enum timeline_field field;
    int digits;
} columns[] = {
    {"rank", FIELD_RANK, 0},
    {"global_rank", FIELD_RANK, 0},
    {"host", FIELD_HOST, 0},
    {"hostname", FIELD_HOST, 0},
    {"node", FIELD_HOST, 0},
    {"group", FIELD_GROUP, 0},
    {"comm", FIELD_GROUP, 0},
    {"communicator", FIELD_GROUP, 0},
    {"process_group", FIELD_GROUP, 0},
    {"operation", FIELD_OPERATION, 0},
    {"op", FIELD_OPERATION, 0},
    {"name", FIELD_OPERATION, 0},
    {"number", FIELD_NUMBER, 0},
    {"seq", FIELD_NUMBER, 0},
    {"iteration", FIELD_ITERATION, 0},
    {"iter", FIELD_ITERATION, 0},
    {"step", FIELD_ITERATION, 0},
    {"start", FIELD_START, SECONDS},
    {"start_s", FIELD_START, SECONDS},
    {"start_ms", FIELD_START, MILLISECONDS},
    {"start_us", FIELD_START, MICROSECONDS},
    {"start_ns", FIELD_START, NANOSECONDS},
    {"ts", FIELD_START, MICROSECONDS},
    {"duration", FIELD_DURATION, SECONDS},
    {"duration_s", FIELD_DURATION, SECONDS},
    {"duration_ms", FIELD_DURATION, MILLISECONDS},
    {"duration_us", FIELD_DURATION, MICROSECONDS},
    {"duration_ns", FIELD_DURATION, NANOSECONDS},
    {"dur", FIELD_DURATION, MICROSECONDS},
    {"end", FIELD_END, SECONDS},
    {"end_s", FIELD_END, SECONDS},
    {"end_ms", FIELD_END, MILLISECONDS},
    {"end_us", FIELD_END, MICROSECONDS},
    {"end_ns", FIELD_END, NANOSECONDS},
    {"issued", FIELD_ISSUED, AS_START},
    {"issued_s", FIELD_ISSUED, SECONDS},
    {"issued_ms", FIELD_ISSUED, MILLISECONDS},
    {"issued_us", FIELD_ISSUED, MICROSECONDS},
    {"issued_ns", FIELD_ISSUED, NANOSECONDS},
    {"bytes", FIELD_BYTES, 0},
    {"size", FIELD_BYTES, 0},
    {"peer", FIELD_PEER, 0},
};

enum timeline_field timeline_field_find(const char *name, size_t bytes, int *digits)
{
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (strlen(columns[i].name) == bytes && !strncasecmp(columns[i].name, name, bytes)) {
            *digits = columns[i].digits;
            return columns[i].field;
        }
    return FIELD_NONE;
}

static uint64_t power_of_ten(int exponent)
{
    uint64_t power = 1;
    while (exponent-- > 0)
        power *= 10;
    return power;
}

/* The digits of a number without its point: value, and how many of them stood behind the point.
 * What follows the digits is in *rest. */
static bool read_digits(const char *text, uint64_t *value, int *behind, const char **rest)
{
    enum { DIGITS_KEPT = 18 };
    bool point = false, any = false;
    int kept = 0;
    *value = 0;
    *behind = 0;
    for (; isdigit((unsigned char)*text) || (*text == '.' && !point); text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        any = true;
        if (kept < DIGITS_KEPT) {
            *value = *value * 10 + (uint64_t)(*text - '0');
            kept += kept || *value;
            *behind += point;
        } else {
            *behind -= !point;
        }
    }
    *rest = text;
    return any;
}

/* A number of decimal digits, with or without a point or an exponent, times 10^digits, rounded.
 * False if it is none or does not fit. */
static bool timeline_decimal(const char *text, int digits, int64_t *value)
{
    uint64_t mantissa;
    int behind;
    bool negative = *text == '-';
    text += *text == '-' || *text == '+';
    if (!read_digits(text, &mantissa, &behind, &text))
        return false;
    long exponent = 0;
    if (*text == 'e' || *text == 'E') {
        char *end;
        exponent = strtol(text + 1, &end, 10);
        if (end == text + 1 || exponent < -100 || exponent > 100)
            return false;
        text = end;
    }
    if (*text)
        return false;
    int shift = (int)exponent + digits - behind;
    if (shift < -18)
        mantissa = 0;
    else if (shift < 0)
        mantissa = (mantissa + power_of_ten(-shift) / 2) / power_of_ten(-shift);
    else if (mantissa && (shift > 18 || mantissa > (uint64_t)INT64_MAX / power_of_ten(shift)))
        return false;
    else if (mantissa)
        mantissa *= power_of_ten(shift);
    *value = negative ? -(int64_t)mantissa : (int64_t)mantissa;
    return true;
}

struct foreign_timeline *timeline_of(struct import *import)
{
    void **state = import_state(import);
    if (!*state)
        *state = calloc(1, sizeof(struct foreign_timeline));
    return *state;
}

/* The index of a name, added if it is new; UINT32_MAX when memory is short. */
static uint32_t timeline_name(struct timeline_names *names, const char *text)
{
    struct timeline_name *name;
    HASH_FIND_STR(names->table, text, name);
    if (name)
        return name->index;
    if (!ARRAY_ADD(names->by_index, names->count))
        return UINT32_MAX;
    name = calloc(1, sizeof *name);
    if (!name || !(name->text = strdup(text))) {
        free(name);
        return UINT32_MAX;
    }
    name->index = names->count;
    names->by_index[names->count++] = name;
    HASH_ADD_KEYPTR(hh, names->table, name->text, strlen(name->text), name);
    return name->index;
}

/* A number that the row may leave out: what is none is not known. */
static int64_t number_of(const struct timeline_texts *texts, enum timeline_field field)
{
    int64_t value;
    int digits = texts->digits[field] == AS_START ? texts->digits[FIELD_START]
                                                  : texts->digits[field];
    return timeline_decimal(texts->text[field], digits, &value) ? value : TIMELINE_UNKNOWN;
}

/* What a row must say. Returns what is wrong with it, or NULL. */
static const char *read_needed_fields(const struct timeline_texts *texts, struct foreign_row *row)
{
    int64_t rank = number_of(texts, FIELD_RANK), duration = number_of(texts, FIELD_DURATION),
            end = number_of(texts, FIELD_END);
    row->start_ns = number_of(texts, FIELD_START);
    if (rank < 0 || rank > INT32_MAX)
        return "no rank";
    if (!texts->text[FIELD_OPERATION][0])
        return "no operation";
    if (row->start_ns == TIMELINE_UNKNOWN)
        return "no start";
    if (duration == TIMELINE_UNKNOWN && end != TIMELINE_UNKNOWN && end >= row->start_ns)
        duration = end - row->start_ns;
    if (duration < 0)
        return "no duration, or a negative one";
    row->rank = (int32_t)rank;
    row->duration_ns = (uint64_t)duration;
    return NULL;
}

static bool is_nothing(const char *text)
{
    static const char *const nothing[] = {"none", "null", "nan", "n/a", "-"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        if (!strcasecmp(text, nothing[i]))
            return true;
    return false;
}

int timeline_add(struct import *import, struct foreign_timeline *timeline,
                 const struct timeline_texts *texts, const char *where)
{
    struct foreign_row row = {0};
    const char *wrong = read_needed_fields(texts, &row);
    if (wrong) {
        import_refuse(import, "%s: the row has %s", where, wrong);
        return 0;
    }
    if (!ARRAY_ADD(timeline->row, timeline->rows))
        return -1;
    const char *group = texts->text[FIELD_GROUP], *host = texts->text[FIELD_HOST];
    int64_t bytes = number_of(texts, FIELD_BYTES), peer = number_of(texts, FIELD_PEER);
    row.issued_ns = number_of(texts, FIELD_ISSUED);
    row.number = number_of(texts, FIELD_NUMBER);
    row.iteration = number_of(texts, FIELD_ITERATION);
    row.bytes = bytes > 0 ? (uint64_t)bytes : 0;
    row.peer = peer >= 0 && peer <= INT32_MAX ? (int32_t)peer : -1;
    row.group = timeline_name(&timeline->groups, is_nothing(group) ? "" : group);
    row.operation = timeline_name(&timeline->operations, texts->text[FIELD_OPERATION]);
    row.host = timeline_name(&timeline->hosts, is_nothing(host) ? "" : host);
    if (row.group == UINT32_MAX || row.operation == UINT32_MAX || row.host == UINT32_MAX)
        return -1;
    timeline->row[timeline->rows++] = row;
    return 0;
}
