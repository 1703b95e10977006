/* stretches.c: joins work on GPUs to stretches. */
#include "interpose/timing/stretches.h"

#include <string.h>

enum {
    STRETCH_DEVICES = 64,   /* of one process; more share these */
    GAP_NS = 50000,         /* between two pieces of work of a stretch */
    GAPS_OF_A_STRETCH = 200 /* how long it gets */
};

/* Heapsort: no memory, and no bad order. */
static void sink_element(char *array, size_t from, size_t count, size_t bytes,
                         uint64_t (*key)(const void *))
{
    char swapped[RECORD_BYTES];
    for (size_t child = 2 * from + 1; child < count; child = 2 * from + 1) {
        if (child + 1 < count && key(array + child * bytes) < key(array + (child + 1) * bytes))
            child++;
        if (key(array + from * bytes) >= key(array + child * bytes))
            return;
        memcpy(swapped, array + from * bytes, bytes);
        memcpy(array + from * bytes, array + child * bytes, bytes);
        memcpy(array + child * bytes, swapped, bytes);
        from = child;
    }
}

/* By this key, ascending; in place. */
static void stretches_sort(void *element, size_t count, size_t bytes, uint64_t (*key)(const void *))
{
    char *array = element, swapped[RECORD_BYTES];
    for (size_t from = count / 2; from-- > 0;)
        sink_element(array, from, count, bytes, key);
    for (size_t end = count; end-- > 1;) {
        memcpy(swapped, array, bytes);
        memcpy(array, array + end * bytes, bytes);
        memcpy(array + end * bytes, swapped, bytes);
        sink_element(array, 0, end, bytes, key);
    }
}

/* An operation counts where it ends: that is where it ends a stretch. */
static uint64_t placed_key(const void *element)
{
    const struct placed_work *work = element;
    return work->launch ? work->end_ns : work->begin_ns;
}

/* While records are made time_ns is when they end. */
static uint64_t record_key(const void *element)
{
    return ((const struct record *)element)->time_ns;
}

struct joining {
    struct record *open[STRETCH_DEVICES]; /* NULL: none */
    struct record *record;
    size_t count, room;
    struct record spare; /* those that find no room */
};

static struct record *add_record(struct joining *joining)
{
    struct record *record = joining->count < joining->room ? &joining->record[joining->count]
                                                           : &joining->spare;
    joining->count++;
    memset(record, 0, sizeof *record);
    return record;
}

static void join_operation(struct joining *joining, const struct placed_work *work)
{
    struct record *record = add_record(joining);
    record->api = API_notice_timed;
    record->device = work->device;
    record->time_ns = work->end_ns;
    record->timed.slot = work->slot;
    record->timed.launch = work->launch;
    record->timed.begin_ns = work->begin_ns;
    record->timed.end_ns = work->end_ns;
    joining->open[work->device % STRETCH_DEVICES] = NULL;
}

static void join_work(struct joining *joining, const struct placed_work *work, uint64_t gap_ns)
{
    struct record **open = &joining->open[work->device % STRETCH_DEVICES], *record = *open;
    if (!record || work->begin_ns > record->time_ns + gap_ns ||
        work->end_ns > record->activity.begin_ns + GAPS_OF_A_STRETCH * gap_ns) {
        *open = record = add_record(joining);
        record->api = API_notice_activity;
        record->device = work->device;
        record->activity.begin_ns = record->activity.end_ns = record->time_ns = work->begin_ns;
        record->activity.kind = ACTIVITY_COMPUTE;
    }
    record->activity.count++;
    if (work->end_ns <= record->time_ns)
        return;
    uint64_t from_ns = work->begin_ns > record->time_ns ? work->begin_ns : record->time_ns;
    record->activity.busy_ns += work->end_ns - from_ns;
    record->activity.end_ns = record->time_ns = work->end_ns;
}

static size_t join_with_gap(const struct placed_work *work, size_t count, struct record *record,
                            size_t room, uint64_t gap_ns)
{
    struct joining joining = {.record = record, .room = room};
    for (size_t i = 0; i < count; i++)
        if (work[i].launch)
            join_operation(&joining, &work[i]);
        else
            join_work(&joining, &work[i], gap_ns);
    return joining.count;
}

size_t stretches_record(struct placed_work *work, size_t count, struct record *record, size_t room)
{
    uint64_t gap_ns = GAP_NS;
    size_t records;
    stretches_sort(work, count, sizeof *work, placed_key);
    /* Each operation may end a stretch of each device, so at the end there are no more. */
    while ((records = join_with_gap(work, count, record, room, gap_ns)) > room &&
           gap_ns < 1ull << 40)
        gap_ns *= 2;
    records = records < room ? records : room;
    stretches_sort(record, records, sizeof *record, record_key);
    return records;
}
