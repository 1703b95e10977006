/* finding_diverged.c: compares the lines at which two ranks made the calls that NCCL matched before
 * a finding. Where they differ from some call on up to the finding, and agree before, one of them
 * left a call out or made one more there. */
#include "lib/finding/finding_diverged.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/trace/names.h"
#include "lib/trace/record.h"
#include "lib/trace/site.h"
#include "lib/trace/site_operation.h"

enum { CALLS_MAX = 1024, BLOCK_CALLS = 1024, KEPT = 256, PLACE_COLUMNS = 100 };

/* Where a call was made. */
struct made_at {
    uint64_t stack;
    bool is_address;
    uint64_t lines; /* hash of its lines; 0: not known */
};

/* The last calls of a rank before the finding: those with the numbers `first` to `end`. */
struct calls_made {
    int process;
    uint64_t first, end;
    struct made_at *call, kept[KEPT];
};

/* Its sides are at different calls, of which the first is a collective: only those are numbered as
 * they are matched. */
static bool is_about_order(const struct finding *finding)
{
    static const char *const codes[] = {"DC101", "DC102", "DC201", "DC206"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!strcmp(finding->code, codes[i]))
            return finding->has_number && finding->number && finding->sides > 1 &&
                   finding->side[0].process >= 0 && finding->side[1].process >= 0 &&
                   api_class_of(finding->side[0].act.call.api) == CLASS_COLLECTIVE;
    return false;
}

static uint64_t hash_lines(struct trace *trace, int process, uint64_t stack, bool is_address)
{
    struct frame frame[SITE_FRAMES_MAX];
    char line[320];
    int frames = site_frames(trace, process, stack, is_address, frame);
    uint64_t hash = 0;
    if (site_user_frame(frame, frames) < 0)
        return 0;
    for (int i = 0; i < frames; i++) {
        snprintf(line, sizeof line, "%s:%d %016llx", frame[i].file, frame[i].line,
                 (unsigned long long)hash);
        hash = string_id(line, strlen(line));
    }
    return hash;
}

static void keep_place(struct calls_made *made, struct trace *trace, const struct made_at *at,
                       uint64_t number)
{
    struct made_at *kept = &made->kept[at->stack % KEPT];
    if (!kept->stack || kept->stack != at->stack || kept->is_address != at->is_address) {
        *kept = *at;
        kept->lines = hash_lines(trace, made->process, at->stack, at->is_address);
    }
    made->call[number - made->first] = *kept;
}

static void read_database_calls(struct calls_made *made, struct trace *trace, uint64_t comm,
                                int database, int process)
{
    static const char sql[] =
        "SELECT w1, stack, flags FROM event WHERE process = ?1 AND phase = 1 AND w0 = ?2 "
        "AND w1 >= ?3 AND w1 < ?4 "
        "AND api IN (SELECT number FROM api WHERE class = 'collective') "
        "AND seq >= (SELECT coalesce(max(seq), 0) FROM operation_block "
        "            WHERE comm = ?2 AND process = ?1 AND block = ?5)";
    const int64_t value[] = {process, (int64_t)comm, (int64_t)made->first, (int64_t)made->end,
                             (int64_t)(made->first / BLOCK_CALLS)};
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(trace_database(trace, database), sql, -1, &row, NULL) != SQLITE_OK)
        return;
    for (int i = 0; i < (int)(sizeof value / sizeof *value); i++)
        sqlite3_bind_int64(row, i + 1, value[i]);
    while (sqlite3_step(row) == SQLITE_ROW) {
        const struct made_at at = {
            .stack = (uint64_t)sqlite3_column_int64(row, 1),
            .is_address = sqlite3_column_int64(row, 2) & RECORD_FLAG_ADDRESS,
        };
        if (at.stack)
            keep_place(made, trace, &at, (uint64_t)sqlite3_column_int64(row, 0));
    }
    sqlite3_finalize(row);
}

static void read_all_calls(struct calls_made *made, struct trace *trace, uint64_t comm)
{
    for (int database = 0; database < trace_database_count(trace); database++)
        for (int process = 0; process < trace_database_processes(trace, database); process++)
            if (trace_process_of(trace, database, process) == made->process)
                read_database_calls(made, trace, comm, database, process);
}

/* The same pair of lines was matched before: the program means it. */
static bool is_usual(const struct calls_made *a, const struct calls_made *b, uint64_t at)
{
    for (uint64_t i = 0; i < at; i++)
        if (a->call[i].lines == a->call[at].lines && b->call[i].lines == b->call[at].lines)
            return true;
    return false;
}

/* Which call it is, counted from the first that was read; -1: none. */
static int64_t find_diverged(const struct calls_made *a, const struct calls_made *b)
{
    uint64_t count = a->end - a->first, at = count;
    while (at && a->call[at - 1].lines && b->call[at - 1].lines &&
           a->call[at - 1].lines != b->call[at - 1].lines)
        at--;
    bool agree_before = at && a->call[at - 1].lines && b->call[at - 1].lines;
    return at < count && agree_before && !is_usual(a, b, at) ? (int64_t)at : -1;
}

/* A side's call, and its frames. */
struct diverged_side {
    const struct finding_side *side;
    const struct made_at *at;
    struct frame frame[SITE_FRAMES_MAX];
    int frames;
};

/* The outermost line of which they are not the same. */
static void find_diverged_lines(const struct diverged_side side[2], const struct frame *line[2])
{
    int common = 0;
    while (common < side[0].frames - 1 && common < side[1].frames - 1) {
        for (int i = 0; i < 2; i++)
            line[i] = &side[i].frame[side[i].frames - 1 - common];
        if (line[0]->line != line[1]->line || strcmp(line[0]->file, line[1]->file) != 0)
            return;
        common++;
    }
    for (int i = 0; i < 2; i++)
        line[i] = &side[i].frame[side[i].frames - 1 - common];
}

/* "rank 0 in barrier() at train.py:12" */
static void write_diverged(FILE *out, struct trace *trace, const struct diverged_side *side,
                           const struct frame *line)
{
    char ranks[128], place[PLACE_COLUMNS + 8], operation[SITE_OPERATION_BYTES];
    site_operation_of(trace, side->side->process, side->at->stack, side->at->is_address, operation,
                      sizeof operation);
    fprintf(out, "%s %s%s%s at %s", rankset_count(&side->side->ranks) == 1 ? "rank" : "ranks",
            rankset_text(&side->side->ranks, ranks, sizeof ranks), *operation ? " in " : "",
            operation, frame_place(line, PLACE_COLUMNS, place, sizeof place));
}

static void describe_diverged(struct trace *trace, const struct finding *finding,
                              const struct calls_made made[2], uint64_t at,
                              char what[DIVERGED_BYTES])
{
    struct diverged_side side[2];
    const struct frame *line[2];
    FILE *out = fmemopen(what, DIVERGED_BYTES, "w");
    if (!out)
        return;
    for (int i = 0; i < 2; i++) {
        side[i].side = &finding->side[i];
        side[i].at = &made[i].call[at];
        side[i].frames = site_frames(trace, made[i].process, side[i].at->stack,
                                     side[i].at->is_address, side[i].frame);
    }
    find_diverged_lines(side, line);
    fprintf(out, "The ranks diverged at #%llu already, in calls that look the same to NCCL: ",
            (unsigned long long)(made[0].first + at));
    write_diverged(out, trace, &side[0], line[0]);
    fputs(", ", out);
    write_diverged(out, trace, &side[1], line[1]);
    fputc('.', out);
    fclose(out);
}

const char finding_diverged_look[] =
    "Whether both lines are meant to be one operation. If not, one rank leaves a call out there, "
    "or makes one more: look for a condition before the first of them.";

bool finding_diverged(struct trace *trace, const struct finding *finding, char what[DIVERGED_BYTES])
{
    int64_t at = -1;
    *what = '\0';
    if (!trace || !is_about_order(finding))
        return false;
    struct calls_made made[2];
    for (int i = 0; i < 2; i++) {
        uint64_t end = finding->number, first = end > CALLS_MAX ? end - CALLS_MAX : 0;
        made[i] =
            (struct calls_made){.process = finding->side[i].process, .first = first, .end = end};
        made[i].call = calloc(end - first, sizeof *made[i].call);
    }
    if (made[0].call && made[1].call) {
        for (int i = 0; i < 2; i++)
            read_all_calls(&made[i], trace, finding->comm);
        at = find_diverged(&made[0], &made[1]);
        if (at >= 0)
            describe_diverged(trace, finding, made, (uint64_t)at, what);
    }
    free(made[0].call);
    free(made[1].call);
    return *what != '\0';
}
