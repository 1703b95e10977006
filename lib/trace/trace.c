/* trace.c: reads one or several trace databases as one stream of events. */
#include "lib/trace/trace.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/array.h"
#include "lib/base/descriptors.h"
#include "lib/trace/merge.h"
#include "lib/trace/symbols.h"
#include "lib/trace/trace_missing.h"
#include "lib/trace/trace_internal.h"

enum {
    FILES_OF_DATABASE = 3, /* with its log and the index of that */
    LOOK_EVERY = 16,       /* databases, whether descriptors run out */
    FILES_LEFT = 64        /* at least: for those, and for what else is opened meanwhile */
};

static int add_process(void *context, const struct process_info *info)
{
    struct trace *trace = context;
    struct trace_process *process = NULL;
    if (!ARRAY_ADD(trace->processes, trace->process_count) || !(process = malloc(sizeof *process)))
        return -1;
    *process =
        (struct trace_process){*info, trace->adding, trace->sources[trace->adding].process_count};
    process->info.realtime_ns += (uint64_t)trace->sources[trace->adding].clock_ns;
    trace->processes[trace->process_count] = process;
    return trace->process_count++;
}

/* Where there are many, those that nobody writes any more don't need their logs. */
static int be_frugal(struct trace *trace, struct error *err)
{
    if (trace->is_frugal || trace->source_count % LOOK_EVERY || !descriptors_are_few(FILES_LEFT))
        return 0;
    trace->is_frugal = true;
    for (int i = 0; i < trace->source_count; i++)
        if (source_settle(&trace->sources[i], err) < 0)
            return -1;
    return 0;
}

static int add_source(struct trace *trace, const char *path, struct error *err)
{
    if (be_frugal(trace, err) < 0)
        return -1;
    if (!ARRAY_ADD(trace->sources, trace->source_count))
        return error_memory(err, "can't read %s", path);
    struct trace_source *source = &trace->sources[trace->source_count];
    if (source_open(source, path, err) < 0)
        return descriptors_are_few(FILES_OF_DATABASE)
                   ? error_set(
                         err,
                         "can't open %s beside %d databases: no more files may be open; raise "
                         "the limit (ulimit -n, or LimitNOFILE of the service), or read fewer "
                         "databases at a time",
                         path, trace->source_count)
                   : -1;
    trace->source_count++;
    return trace->is_frugal ? source_settle(source, err) : 0;
}

static int is_database(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 3 && strcmp(entry->d_name + length - 3, ".db") == 0;
}

int trace_find_database(const char *directory, struct error *err)
{
    struct dirent **entries;
    int count = scandir(directory, &entries, is_database, NULL);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    if (count >= 0)
        free(entries);
    return count > 0 ? 0 : trace_missing(directory, err);
}

static int add_directory(struct trace *trace, const char *path, struct error *err)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_database, alphasort);
    if (count < 0)
        return error_unreadable(err, "the directory ", path, errno);
    int result = count ? 0 : trace_missing(path, err);
    for (int i = 0; i < count; i++) {
        char file[PATH_MAX];
        if (result == 0 &&
            snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name) < (int)sizeof file)
            result = add_source(trace, file, err);
        free(entries[i]);
    }
    free(entries);
    return result;
}

int trace_open(struct trace **result, const char *const *paths, int count, struct error *err)
{
    descriptors_raise();
    *result = NULL;
    struct trace *trace = calloc(1, sizeof *trace);
    if (!trace || !(trace->symbols = symbols_new())) {
        free(trace);
        return error_memory(err, "can't open the trace");
    }
    for (int i = 0; i < count; i++) {
        struct stat status;
        bool is_directory = stat(paths[i], &status) == 0 && S_ISDIR(status.st_mode);
        if ((is_directory ? add_directory : add_source)(trace, paths[i], err) < 0)
            goto out;
    }
    trace->emptied = -1;
    if (merge_reserve(&trace->heads, trace->source_count)) {
        error_memory(err, "can't open the trace");
        goto out;
    }
    if (trace_refresh(trace, err) < 0)
        goto out;
    trace_find_clocks(trace);
    *result = trace;
    return 0;
out:
    trace_close(trace);
    return -1;
}

void trace_close(struct trace *trace)
{
    if (!trace)
        return;
    for (int i = 0; i < trace->source_count; i++)
        source_close(&trace->sources[i]);
    for (int i = 0; i < trace->process_count; i++)
        free(trace->processes[i]);
    for (int i = 0; i < STRING_BUCKETS; i++)
        for (struct trace_text *text = trace->strings[i], *next; text; text = next) {
            next = text->next;
            free(text);
        }
    symbols_free(trace->symbols);
    free(trace->heads.head);
    free(trace->sources);
    free(trace->processes);
    free(trace);
}

int trace_process_count(const struct trace *trace)
{
    return trace->process_count;
}

const struct process_info *trace_process(const struct trace *trace, int process)
{
    return &trace->processes[process]->info;
}

int trace_refresh(struct trace *trace, struct error *err)
{
    int before = trace->process_count;
    trace->asked = 0;
    for (int i = 0; i < trace->source_count; i++) {
        trace->adding = i;
        /* Events first, so that the processes of all events seen are among those read after. */
        if (source_refresh(&trace->sources[i], err) < 0 ||
            source_read_processes(&trace->sources[i], add_process, trace, err) < 0)
            return -1;
    }
    return trace->process_count - before;
}

static uint64_t head_time(const struct trace *trace, const struct trace_source *source)
{
    const struct process_info *info = trace_process(trace, source->processes[source->head_process]);
    return source->head.time_ns + info->realtime_ns - info->monotonic_ns;
}

/* Puts the next record of a source, if there is one, among those that wait for their turn. Returns
 * 0, or -1 with err. */
static int fetch_head(struct trace *trace, int number, struct error *err)
{
    struct trace_source *source = &trace->sources[number];
    if (trace->emptied == number)
        trace->emptied = -1;
    if (source->has_head)
        return 0;
    int got = source_fetch(source, err);
    source->has_head = got > 0;
    if (got > 0)
        merge_push(&trace->heads, (struct merge_head){head_time(trace, source), number});
    return got < 0 ? -1 : 0;
}

int trace_next(struct trace *trace, int *process, struct record *record, struct error *err)
{
    while (trace->asked < trace->source_count)
        if (fetch_head(trace, trace->asked++, err) < 0)
            return -1;
    if (trace->emptied >= 0 && fetch_head(trace, trace->emptied, err) < 0)
        return -1;
    if (!trace->heads.count)
        return 0;
    int number = merge_pop(&trace->heads).source;
    struct trace_source *source = &trace->sources[number];
    source->has_head = false;
    *process = source->processes[source->head_process];
    *record = source->head;
    trace->emptied = number;
    return 1;
}

int trace_database_count(const struct trace *trace)
{
    return trace->source_count;
}

struct sqlite3 *trace_database(const struct trace *trace, int database)
{
    return trace->sources[database].db;
}

void trace_is_own(struct trace *trace)
{
    trace->is_own = true;
}

void trace_stop_on(struct trace *trace, int (*is_stopped)(void *context), void *context)
{
    for (int i = 0; i < trace->source_count; i++) {
        trace->sources[i].guard->is_stopped = is_stopped;
        trace->sources[i].guard->context = context;
    }
}

const char *trace_database_path(const struct trace *trace, int database)
{
    return trace->sources[database].path;
}

int trace_process_of(const struct trace *trace, int database, int process)
{
    const struct trace_source *source = &trace->sources[database];
    return process >= 0 && process < source->process_count ? source->processes[process] : -1;
}

int trace_database_processes(const struct trace *trace, int database)
{
    return trace->sources[database].process_count;
}

uint64_t trace_database_events(const struct trace *trace, int database)
{
    const struct trace_source *source = &trace->sources[database];
    return (uint64_t)(source->limit == INT64_MAX ? source->last : source->limit) -
           source_count_dropped(source);
}

uint64_t trace_event_count(struct trace *trace)
{
    uint64_t count = 0;
    for (int i = 0; i < trace->source_count; i++)
        count += trace_database_events(trace, i);
    return count;
}

bool trace_database_complete(struct trace *trace, int database)
{
    return source_complete(&trace->sources[database]);
}

bool trace_complete(struct trace *trace)
{
    for (int i = 0; i < trace->source_count; i++)
        if (!source_complete(&trace->sources[i]))
            return false;
    return true;
}

int trace_database_unrecorded(struct trace *trace, int database)
{
    return source_unrecorded(&trace->sources[database]);
}

char *trace_database_meta(struct trace *trace, int database, const char *key)
{
    return source_meta(&trace->sources[database], key);
}

int trace_unrecorded(struct trace *trace)
{
    int count = 0;
    for (int i = 0; i < trace->source_count; i++)
        count += trace_database_unrecorded(trace, i);
    return count;
}

uint64_t trace_hang_after_ns(struct trace *trace)
{
    uint64_t shortest = 0;
    for (int i = 0; i < trace->source_count; i++) {
        uint64_t hang_after_ns = source_hang_after_ns(&trace->sources[i]);
        if (hang_after_ns && (!shortest || hang_after_ns < shortest))
            shortest = hang_after_ns;
    }
    return shortest;
}

uint64_t trace_alive_ns(struct trace *trace)
{
    uint64_t last_ns = 0;
    for (int i = 0; i < trace->source_count; i++) {
        uint64_t alive_ns = source_alive_ns(&trace->sources[i]);
        if (alive_ns > last_ns)
            last_ns = alive_ns;
    }
    return last_ns;
}

void trace_visit_clocks(struct trace *trace,
                        void (*visit)(void *context, const struct trace_clock *clock),
                        void *context)
{
    for (int i = 0; i < trace->source_count; i++) {
        const struct trace_source *source = &trace->sources[i];
        int process = trace_process_of(trace, i, 0);
        source_visit_clocks(&trace->sources[i], visit, context);
        if (source->clock_ns && process >= 0)
            visit(context, &(struct trace_clock){trace_process(trace, process)->host,
                                                 source->clock_ns, .is_by_hub = false});
    }
}

bool trace_is_job(struct trace *trace)
{
    for (int i = 0; i < trace->source_count; i++)
        if (source_is_job(&trace->sources[i]))
            return true;
    return false;
}
