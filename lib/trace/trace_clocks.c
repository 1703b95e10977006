/* trace_clocks.c: learns from collectives how far the clocks of several databases' hosts are off.
 *
 * A reduction or gathering of all ranks is done on no rank before the last has called it. So of two
 * hosts each sets a limit to how far the other's clock can be off; where the limits of what both
 * took part in leave no room for equal clocks, the middle between them is taken. */
#include <stdlib.h>
#include <uthash.h>

#include "lib/trace/trace_internal.h"

enum {
    EVENTS_READ = 1 << 16,  /* of a database, at most: the first; they are read in 30 ms */
    OPERATIONS_ENOUGH = 32, /* that are done: the limits get no closer by many more */
    OPERATIONS_MAX = 8 * OPERATIONS_ENOUGH
};
/* Below this no rule compares the times of hosts (hub/hub_clock.c has the same). */
static const int64_t matters_ns = 1000000000;

/* What is known of an operation, CLOCK_REALTIME. */
struct met_operation {
    struct {
        int64_t comm, number;
    } key;
    int64_t entered_ns; /* by the last rank that was seen to */
    int64_t done_ns;    /* on the first rank on which it was seen to be; 0: on none */
    UT_hash_handle hh;
};

/* One that was not seen to be done yet. */
struct open_operation {
    struct met_operation *met;
    int process;
    int64_t slot, launch;
};

struct host_clock {
    struct met_operation *met;
    bool is_placed;
    int64_t offset_ns; /* to add to its times */
};

static void free_met(struct met_operation **table)
{
    struct met_operation *met, *next;
    HASH_ITER(hh, *table, met, next) {
        HASH_DEL(*table, met);
        free(met);
    }
}

/* NULL when memory is short: then less is known. */
static struct met_operation *find_met(struct met_operation **table, int64_t comm, int64_t number)
{
    struct met_operation key = {.key = {comm, number}}, *met;
    HASH_FIND(hh, *table, &key.key, sizeof key.key, met);
    if (met || !(met = calloc(1, sizeof *met)))
        return met;
    met->key = key.key;
    HASH_ADD(hh, *table, key, sizeof met->key, met);
    return met;
}

static void add_times(struct met_operation *met, int64_t entered_ns, int64_t done_ns)
{
    if (!met->entered_ns || entered_ns > met->entered_ns)
        met->entered_ns = entered_ns;
    if (done_ns && (!met->done_ns || done_ns < met->done_ns))
        met->done_ns = done_ns;
}

/* The columns of the query below. */
enum { IN_PROCESS, IN_TIME, IN_PHASE, IN_W0, IN_W1, IN_W2, IN_SLOT, IN_LAUNCH };

static sqlite3_stmt *select_events(struct trace_source *source)
{
    static const char query[] =
        "SELECT process, time_ns, phase, w0, w1, w2, w8 & 4294967295, w9 FROM event, "
        "(SELECT min(seq) AS first FROM event) WHERE seq BETWEEN first AND first + ?1 AND "
        "((phase = 1 AND w4 <> 0 AND flags & ?2 = 0 AND api IN (SELECT number FROM api WHERE name "
        "IN ('ncclAllReduce', 'ncclAllGather', 'ncclReduceScatter'))) OR "
        "api = (SELECT number FROM api WHERE name = 'notice_progress')) ORDER BY seq";
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(source->db, query, -1, &statement, NULL) != SQLITE_OK)
        return NULL; /* a damaged database, which its reader says */
    sqlite3_bind_int(statement, 1, EVENTS_READ);
    sqlite3_bind_int(statement, 2, RECORD_FLAG_CAPTURE | RECORD_FLAG_GONE);
    return statement;
}

/* Ends those that this progress shows to be done. Returns how many these are. */
static int close_operations(struct open_operation *open, int *opens, sqlite3_stmt *row, int64_t now)
{
    int kept = 0, count = *opens;
    for (int i = 0; i < count; i++) {
        bool is_done = open[i].process == sqlite3_column_int(row, IN_PROCESS) &&
                       open[i].slot == (sqlite3_column_int64(row, IN_W0) & UINT32_MAX) &&
                       open[i].launch <= sqlite3_column_int64(row, IN_W2);
        if (is_done)
            add_times(open[i].met, 0, now);
        else
            open[kept++] = open[i];
    }
    *opens = kept;
    return count - kept;
}

static void read_operations(struct trace *trace, int number, struct met_operation **table)
{
    struct trace_source *source = &trace->sources[number];
    struct open_operation *open = calloc(OPERATIONS_MAX, sizeof *open);
    sqlite3_stmt *row = open ? select_events(source) : NULL;
    int opens = 0, done = 0;
    while (row && done < OPERATIONS_ENOUGH && sqlite3_step(row) == SQLITE_ROW) {
        int process = sqlite3_column_int(row, IN_PROCESS);
        int known = trace_process_of(trace, number, process);
        if (known < 0)
            continue;
        const struct process_info *info = trace_process(trace, known);
        int64_t now = sqlite3_column_int64(row, IN_TIME) +
                      (int64_t)(info->realtime_ns - info->monotonic_ns);
        if (sqlite3_column_int(row, IN_PHASE) != RECORD_ENTER) {
            done += close_operations(open, &opens, row, now);
            continue;
        }
        struct met_operation *met =
            find_met(table, sqlite3_column_int64(row, IN_W0), sqlite3_column_int64(row, IN_W1));
        if (met)
            add_times(met, now, 0);
        if (met && opens < OPERATIONS_MAX)
            open[opens++] = (struct open_operation){met, process,
                                                    sqlite3_column_int64(row, IN_SLOT),
                                                    sqlite3_column_int64(row, IN_LAUNCH)};
    }
    sqlite3_finalize(row);
    free(open);
}

/* What must be added to this host's times lies between these. Returns false if it took part in
 * nothing that those whose clocks are known did. */
static bool find_limits(const struct host_clock *host, struct met_operation *known, int64_t *least,
                        int64_t *most)
{
    bool any = false;
    *least = INT64_MIN;
    *most = INT64_MAX;
    for (const struct met_operation *own = host->met; own; own = own->hh.next) {
        struct met_operation *other;
        HASH_FIND(hh, known, &own->key, sizeof own->key, other);
        if (!other)
            continue;
        any = true;
        if (own->done_ns && other->entered_ns - own->done_ns > *least)
            *least = other->entered_ns - own->done_ns;
        if (other->done_ns && other->done_ns - own->entered_ns < *most)
            *most = other->done_ns - own->entered_ns;
    }
    return any;
}

/* 0 wherever that is possible, or nothing is (a clock was set meanwhile). */
static int64_t choose_offset(int64_t least, int64_t most)
{
    int64_t offset_ns = 0;
    if (least > most || (least <= matters_ns && most >= -matters_ns))
        return 0;
    if (least == INT64_MIN)
        offset_ns = most;
    else if (most == INT64_MAX)
        offset_ns = least;
    else
        offset_ns = least + (most - least) / 2;
    return offset_ns;
}

static void place_host(struct host_clock *host, int64_t offset_ns, struct met_operation **known)
{
    host->is_placed = true;
    host->offset_ns = offset_ns;
    for (const struct met_operation *own = host->met; own; own = own->hh.next) {
        struct met_operation *met = find_met(known, own->key.comm, own->key.number);
        if (met)
            add_times(met, own->entered_ns + offset_ns,
                      own->done_ns ? own->done_ns + offset_ns : 0);
    }
}

/* The first by its own clock, then those that met one whose clock is known. */
static void place_hosts(struct host_clock *host, int count)
{
    struct met_operation *known = NULL;
    int64_t least, most;
    for (int placed = -1, before = -2; placed != before;) {
        before = placed;
        for (int i = 0; i < count; i++) {
            bool meets = !host[i].is_placed && host[i].met &&
                         (!known || find_limits(&host[i], known, &least, &most));
            if (!meets)
                continue;
            place_host(&host[i], known ? choose_offset(least, most) : 0, &known);
            placed++;
        }
    }
    free_met(&known);
}

static int compare_offsets(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* By which clock most hosts are: the first one's may be the one that is off. */
static int64_t find_median(const struct host_clock *host, int count)
{
    int64_t *offset = calloc((size_t)count, sizeof *offset), median = 0;
    int placed = 0;
    for (int i = 0; i < count && offset; i++)
        if (host[i].is_placed)
            offset[placed++] = host[i].offset_ns;
    if (placed) {
        qsort(offset, (size_t)placed, sizeof *offset, compare_offsets);
        median = offset[(placed - 1) / 2];
    }
    free(offset);
    return median;
}

static void shift_source(struct trace *trace, int number, int64_t offset_ns)
{
    if (llabs(offset_ns) <= matters_ns)
        return;
    trace->sources[number].clock_ns = offset_ns;
    for (int i = 0; i < trace->process_count; i++)
        if (trace->processes[i]->source == number)
            trace->processes[i]->info.realtime_ns += (uint64_t)offset_ns;
}

void trace_find_clocks(struct trace *trace)
{
    int count = trace->source_count;
    struct host_clock *host = count > 1 ? calloc((size_t)count, sizeof *host) : NULL;
    if (!host)
        return;
    for (int i = 0; i < count; i++)
        if (!source_is_job(&trace->sources[i])) /* its hub has done that */
            read_operations(trace, i, &host[i].met);
    place_hosts(host, count);
    int64_t median = find_median(host, count);
    for (int i = 0; i < count; i++) {
        if (host[i].is_placed)
            shift_source(trace, i, host[i].offset_ns - median);
        free_met(&host[i].met);
    }
    free(host);
}
