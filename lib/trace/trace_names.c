/* trace_names.c: what is looked up beside a trace's events: strings, frames, versions, where the
 * calls of a member begin. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/process_file.h"
#include "lib/trace/trace_internal.h"

static struct trace_source *source_of(struct trace *trace, int process, int *local)
{
    if (process < 0 || process >= trace->process_count)
        return NULL;
    *local = trace->processes[process]->local;
    return &trace->sources[trace->processes[process]->source];
}

static const char *keep_string(struct trace *trace, int process, uint64_t id, const void *bytes,
                               size_t count)
{
    struct trace_text *text = malloc(sizeof *text + count + 1);
    if (!text)
        return NULL;
    struct trace_text **bucket = &trace->strings[(id ^ (unsigned)process) % STRING_BUCKETS];
    *text = (struct trace_text){process, id, *bucket};
    memcpy(text->bytes, bytes, count);
    text->bytes[count] = 0;
    *bucket = text;
    return text->bytes;
}

const char *trace_string(struct trace *trace, int process, uint64_t id)
{
    int local;
    struct trace_source *source = source_of(trace, process, &local);
    if (!source || id == 0)
        return NULL;
    for (struct trace_text *text = trace->strings[(id ^ (unsigned)process) % STRING_BUCKETS]; text;
         text = text->next)
        if (text->process == process && text->id == id)
            return text->bytes;
    /* One whose pieces have not all come yet is not there yet. */
    sqlite3_stmt *row = source_prepare(source, &source->string,
                                       "SELECT text FROM string WHERE process = ? AND id = ? AND "
                                       "length(CAST(text AS BLOB)) = bytes");
    if (!row)
        return NULL;
    sqlite3_bind_int(row, 1, local);
    sqlite3_bind_int64(row, 2, (sqlite3_int64)id);
    const char *string = NULL;
    if (sqlite3_step(row) == SQLITE_ROW) {
        const void *bytes = sqlite3_column_text(row, 0);
        if (bytes)
            string = keep_string(trace, process, id, bytes, (size_t)sqlite3_column_bytes(row, 0));
    }
    sqlite3_reset(row);
    return string;
}

static void copy_column(char *to, size_t bytes, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    snprintf(to, bytes, "%s", text ? text : "");
}

/* Of a row that has the function, file and line first. */
static struct frame frame_of_row(uint64_t address, sqlite3_stmt *row)
{
    struct frame frame = {.address = address, .line = sqlite3_column_int(row, 2)};
    copy_column(frame.function, sizeof frame.function, row, 0);
    copy_column(frame.file, sizeof frame.file, row, 1);
    return frame;
}

/* The frames after the first. A trace before schema 1.10 has none. */
static int find_inlined(struct trace_source *source, int local, struct frame *frames, int max)
{
    sqlite3_stmt *row = source_prepare(source, &source->inlined,
                                       "SELECT function, file, line FROM inlined WHERE "
                                       "process = ? AND address = ? ORDER BY depth LIMIT ?");
    int count = 1;
    if (!row)
        return count;
    sqlite3_bind_int(row, 1, local);
    sqlite3_bind_int64(row, 2, (sqlite3_int64)frames->address);
    sqlite3_bind_int(row, 3, max - 1);
    for (; count < max && sqlite3_step(row) == SQLITE_ROW; count++) {
        frames[count] = frame_of_row(frames->address, row);
        memcpy(frames[count].module, frames->module, sizeof frames->module);
    }
    sqlite3_reset(row);
    return count;
}

/* From the tables that the collector filled. */
static int find_symbol(struct trace_source *source, int local, uint64_t address,
                       struct frame *frames, int max)
{
    sqlite3_stmt *row = source_prepare(source, &source->symbol,
                                       "SELECT function, file, line, module FROM symbol WHERE "
                                       "process = ? AND address = ?");
    if (!row)
        return 0;
    sqlite3_bind_int(row, 1, local);
    sqlite3_bind_int64(row, 2, (sqlite3_int64)address);
    bool found = sqlite3_step(row) == SQLITE_ROW;
    if (found) {
        *frames = frame_of_row(address, row);
        copy_column(frames->module, sizeof frames->module, row, 3);
    }
    sqlite3_reset(row);
    return found ? find_inlined(source, local, frames, max) : 0;
}

/* A trace before schema 1.7 dropped no calls. */
uint64_t trace_member_start(struct trace *trace, int process, uint64_t comm, int rank)
{
    int local;
    uint64_t number = 0;
    struct trace_source *source = source_of(trace, process, &local);
    sqlite3_stmt *row = source ? source_prepare(source, &source->start,
                                                "SELECT number FROM member_start "
                                                "WHERE comm = ? AND rank = ?")
                               : NULL;
    if (!row)
        return 0;
    sqlite3_bind_int64(row, 1, (sqlite3_int64)comm);
    sqlite3_bind_int(row, 2, rank);
    if (sqlite3_step(row) == SQLITE_ROW)
        number = (uint64_t)sqlite3_column_int64(row, 0);
    sqlite3_reset(row);
    return number;
}

/* A trace before schema 1.8 has none. */
int trace_library_version(struct trace *trace, int process, const char *name)
{
    int local, version = 0;
    struct trace_source *source = source_of(trace, process, &local);
    if (!strcmp(name, "NCCL")) /* in the table of processes */
        return source ? trace_process(trace, process)->nccl_version : 0;
    sqlite3_stmt *row = source ? source_prepare(source, &source->library,
                                                "SELECT version FROM library "
                                                "WHERE process = ? AND name = ?")
                               : NULL;
    if (!row)
        return 0;
    sqlite3_bind_int(row, 1, local);
    sqlite3_bind_text(row, 2, name, -1, SQLITE_STATIC);
    if (sqlite3_step(row) == SQLITE_ROW)
        version = sqlite3_column_int(row, 0);
    sqlite3_reset(row);
    return version;
}

/* Of NCCL and CUDA the file that is mapped counts, not the metadata of a package. */
static const char environment_query[] =
    "SELECT name, value, set_by FROM setting WHERE process = ?1 UNION ALL SELECT 'NCCL', "
    "printf('%d.%d.%d', nccl_version / 10000, nccl_version / 100 % 100, nccl_version % 100), "
    "'library' FROM process WHERE id = ?1 AND nccl_version >= 10000 UNION ALL SELECT 'CUDA "
    "runtime', printf('%d.%d', cuda_runtime_version / 1000, cuda_runtime_version / 10 % 100), "
    "'library' FROM process WHERE id = ?1 AND cuda_runtime_version > 0 UNION ALL SELECT 'CUDA "
    "driver', printf('%d.%d', cuda_driver_version / 1000, cuda_driver_version / 10 % 100), "
    "'library' FROM process WHERE id = ?1 AND cuda_driver_version > 0 UNION ALL SELECT name, "
    "printf('%d.%d.%d', version / 10000, version / 100 % 100, version % 100), 'library' FROM "
    "library WHERE process = ?1 UNION ALL SELECT DISTINCT replace(s.text, rtrim(s.text, "
    "replace(s.text, '/', '')), ''), s.text || iif(m.build_id = '', '', ', build ' || "
    "m.build_id), 'file' FROM module m JOIN string s ON s.process = m.process AND s.id = m.path "
    "WHERE m.process = ?1 AND (s.text GLOB '*/lib[nr]ccl*' OR s.text GLOB '*/libcudart.so*' OR "
    "s.text GLOB '*/libcuda.so*' OR s.text GLOB '*/libtorch_cuda.so*') ORDER BY 1, 2";

static const char *column_or_empty(sqlite3_stmt *row, int column)
{
    const unsigned char *text = sqlite3_column_text(row, column);
    return text ? (const char *)text : "";
}

void trace_environment(struct trace *trace, int process,
                       void (*visit)(void *context, const char *name, const char *value,
                                     const char *set_by),
                       void *context)
{
    int local;
    struct trace_source *source = source_of(trace, process, &local);
    sqlite3_stmt *row = source ? source_prepare(source, &source->environment, environment_query)
                               : NULL;
    if (!row)
        return;
    sqlite3_bind_int(row, 1, local);
    while (sqlite3_step(row) == SQLITE_ROW)
        visit(context, column_or_empty(row, 0), column_or_empty(row, 1), column_or_empty(row, 2));
    sqlite3_reset(row);
}

/* A host keeps its name over reboots, a container its host's boot. */
static bool is_of_this_host(const struct process_info *info)
{
    char host[sizeof info->host] = "", boot_id[sizeof info->boot_id] = "";
    const char *all = getenv("DDPCHECK_FOREIGN_SYMBOLS");
    gethostname(host, sizeof host - 1);
    boot_id_read(boot_id, sizeof boot_id);
    return (all && !strcmp(all, "1")) || (host[0] && !strcmp(host, info->host)) ||
           (boot_id[0] && !strcmp(boot_id, info->boot_id));
}

static enum symbols_files files_of_process(const struct trace *trace, int process)
{
    if (trace->is_own)
        return SYMBOLS_ALL;
    return is_of_this_host(trace_process(trace, process)) ? SYMBOLS_PLAIN : SYMBOLS_NONE;
}

/* From the object file, if it is still there. */
static int symbolise(struct trace *trace, struct trace_source *source, int local, uint64_t address,
                     struct frame *frames, int max)
{
    int count = 1;
    *frames = (struct frame){.address = address};
    sqlite3_stmt *row = source_prepare(
        source, &source->module,
        "SELECT m.base, coalesce(s.text, ''), m.build_id FROM module m LEFT JOIN string s ON "
        "s.process = m.process AND s.id = m.path "
        "WHERE m.process = ?1 AND m.start <= ?2 AND m.\"end\" > ?2 ORDER BY m.id DESC LIMIT 1");
    if (!row)
        return count;
    sqlite3_bind_int(row, 1, local);
    sqlite3_bind_int64(row, 2, (sqlite3_int64)address);
    if (sqlite3_step(row) == SQLITE_ROW) {
        uint8_t build_id[20];
        const char *text = (const char *)sqlite3_column_text(row, 2);
        struct symbols_module module = {
            .path = (const char *)sqlite3_column_text(row, 1),
            .files = files_of_process(trace, source->processes[local]),
            .base = (uint64_t)sqlite3_column_int64(row, 0),
            .build_id = build_id,
        };
        module.build_id_bytes = text ? build_id_parse(text, build_id, sizeof build_id) : 0;
        if (module.path && module.path[0])
            count = symbols_find(trace->symbols, &module, address, frames, max);
    }
    sqlite3_reset(row);
    return count;
}

/* The Python frames of a stack. *native becomes the id of the stack beneath them, if there are any.
 * A trace of schema 1.0 has none. */
static int python_frames(struct trace_source *source, int local, uint64_t *native,
                         struct frame *frames, int max)
{
    sqlite3_stmt *row =
        source_prepare(source, &source->python,
                       "SELECT p.native, p.line, f.text, u.text FROM python p LEFT JOIN string f "
                       "ON f.process = p.process AND f.id = p.file "
                       "LEFT JOIN string u ON u.process = p.process AND u.id = p.function WHERE "
                       "p.process = ? AND p.id = ? ORDER BY p.depth LIMIT ?");
    int count = 0;
    if (!row)
        return 0;
    sqlite3_bind_int(row, 1, local);
    sqlite3_bind_int64(row, 2, (sqlite3_int64)*native);
    sqlite3_bind_int(row, 3, max);
    for (; count < max && sqlite3_step(row) == SQLITE_ROW; count++) {
        frames[count] = (struct frame){.line = sqlite3_column_int(row, 1)};
        copy_column(frames[count].file, sizeof frames[count].file, row, 2);
        copy_column(frames[count].function, sizeof frames[count].function, row, 3);
        *native = (uint64_t)sqlite3_column_int64(row, 0);
    }
    sqlite3_reset(row);
    return count;
}

static int address_frames(struct trace *trace, struct trace_source *source, int local,
                          uint64_t address, struct frame *frames, int max)
{
    int count = find_symbol(source, local, address, frames, max);
    return count ? count : symbolise(trace, source, local, address, frames, max);
}

static int native_frames(struct trace *trace, struct trace_source *source, int local,
                         uint64_t stack, struct frame *frames, int max)
{
    sqlite3_stmt *row = source_prepare(
        source, &source->frames,
        "SELECT address FROM stack WHERE process = ? AND id = ? ORDER BY depth LIMIT ?");
    int count = 0;
    if (!row)
        return 0;
    sqlite3_bind_int(row, 1, local);
    sqlite3_bind_int64(row, 2, (sqlite3_int64)stack);
    sqlite3_bind_int(row, 3, max);
    while (count < max && sqlite3_step(row) == SQLITE_ROW)
        count += address_frames(trace, source, local, (uint64_t)sqlite3_column_int64(row, 0),
                                frames + count, max - count);
    sqlite3_reset(row);
    return count;
}

int trace_frames(struct trace *trace, int process, uint64_t stack, bool is_address,
                 struct frame *frames, int max)
{
    int local, count;
    struct trace_source *source = source_of(trace, process, &local);
    if (!source || stack == 0 || max <= 0)
        return 0;
    if (is_address)
        return address_frames(trace, source, local, stack, frames, max);
    count = python_frames(source, local, &stack, frames, max);
    return count + native_frames(trace, source, local, stack, frames + count, max - count);
}
