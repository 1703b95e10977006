/* timeline.h: a timeline of others on its way into a trace (docs/import.md, "Timelines").
 *
 * timeline.c reads rows of CSV, timeline_json.c rows of JSON; timeline_rows.c keeps those of all
 * files, because only together they say who is in a group; timeline_emit.c then imports them rank
 * by rank, in the order of the rank's clock. */
#ifndef DDPCHECK_IMPORT_TIMELINE_H
#define DDPCHECK_IMPORT_TIMELINE_H

#include <uthash.h>

#include "lib/import/import.h"

#define TIMELINE_UNKNOWN INT64_MIN
enum { TIMELINE_FIELD_BYTES = 4096 }; /* a longer field is cut: a group's list of ranks */

/* What a row may say. */
enum timeline_field {
    FIELD_NONE = -1,
    FIELD_RANK,
    FIELD_HOST,
    FIELD_GROUP,
    FIELD_OPERATION,
    FIELD_NUMBER,
    FIELD_ITERATION,
    FIELD_START,
    FIELD_DURATION,
    FIELD_END,
    FIELD_ISSUED,
    FIELD_BYTES,
    FIELD_PEER,
    FIELDS
};
/* Which field a column or key of this name is, and, of a time, how many decimal digits of a
 * nanosecond its unit has (seconds: 9; -1: as many as the start's). FIELD_NONE: none. */
enum timeline_field timeline_field_find(const char *name, size_t bytes, int *digits);

/* The texts of one row, as they stand; "" where it does not say. */
struct timeline_texts {
    char text[FIELDS][TIMELINE_FIELD_BYTES];
    int digits[FIELDS]; /* of times */
};

struct timeline_name {
    char *text;
    uint32_t index;
    UT_hash_handle hh;
};
struct timeline_names {
    struct timeline_name *table, **by_index;
    uint32_t count;
};

struct foreign_row {
    int64_t start_ns, issued_ns; /* of its rank's clock; issued: TIMELINE_UNKNOWN */
    int64_t number, iteration;   /* TIMELINE_UNKNOWN */
    uint64_t duration_ns, bytes; /* bytes: 0 not known */
    int32_t rank, peer;          /* peer: world rank, -1 not known */
    uint32_t group, operation;   /* names; group "": compute */
    uint32_t host;
};

struct foreign_timeline {
    struct foreign_row *row;
    size_t rows;
    struct timeline_names groups, operations, hosts;
    int64_t newest_ns; /* when the newest of the files was written, since 1970 */
    char *file;        /* the first, for messages */
};

/* The timeline of this import, made at the first call. NULL when memory is short. */
struct foreign_timeline *timeline_of(struct import *import);
/* Keeps the row. `where` is "FILE: line 12", for what it refuses. 0, or -1 when memory is short. */
int timeline_add(struct import *import, struct foreign_timeline *timeline,
                 const struct timeline_texts *texts, const char *where);

/* JSON: rows as objects in lines, in arrays, or Chrome's events. 0, or -1 with err. */
int timeline_read_json(struct import *import, struct foreign_timeline *timeline,
                       struct import_input *input, struct error *err);
/* Imports all that was kept. 0 or -1. */
int timeline_emit(struct import *import, struct foreign_timeline *timeline);

#endif
