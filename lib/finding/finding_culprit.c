/* finding_culprit.c: says of the rank that others wait for who and where it is. */
#include "lib/finding/finding_culprit.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "lib/base/moment.h"
#include "lib/base/text.h"

enum { PLACE_COLUMNS = 60 };

int finding_culprit(const struct finding *finding)
{
    for (int i = 0; code_family(finding->code) == FAMILY_HANG && i < finding->sides; i++)
        if (did_is_awaited(finding->side[i].act.did))
            return i;
    return -1;
}

/* The device of the process, where all its members use one; -1: none is known. */
static int device_of_process(struct trace *trace, int process)
{
    static const char sql[] = "SELECT max(device) FROM member_state WHERE process = ?1 "
                              "HAVING min(device) = max(device)";
    int device = -1;
    for (int database = 0; database < trace_database_count(trace); database++)
        for (int own = 0; own < trace_database_processes(trace, database); own++) {
            sqlite3_stmt *row = NULL;
            if (trace_process_of(trace, database, own) != process ||
                sqlite3_prepare_v2(trace_database(trace, database), sql, -1, &row, NULL))
                continue;
            sqlite3_bind_int(row, 1, own);
            if (sqlite3_step(row) == SQLITE_ROW)
                device = sqlite3_column_int(row, 0);
            sqlite3_finalize(row);
        }
    return device;
}

/* " (node-b, GPU 2, pid 18146)", of what is known. */
static void append_process(struct text *text, struct trace *trace, int process)
{
    const struct process_info *info = trace_process(trace, process);
    int device = device_of_process(trace, process);
    const char *before = " (";
    if (*info->host) {
        text_add(text, "%s%s", before, info->host);
        before = ", ";
    }
    if (device >= 0) {
        text_add(text, "%sGPU %d", before, device);
        before = ", ";
    }
    if (info->pid > 0) {
        text_add(text, "%spid %d", before, info->pid);
        before = ", ";
    }
    text_add(text, *before == ',' ? ")" : "");
}

/* "load_batch() loader.c:17". */
static void append_place(struct text *text, const char *before, const struct shown_frames *where)
{
    char function[sizeof where->frame->function + 8], place[sizeof where->frame->file];
    if (where->shown < 0)
        return;
    const struct frame *frame = &where->frame[where->shown];
    text_add(text, "%s%s %s", before, frame_function(frame, function, sizeof function),
             frame_place(frame, PLACE_COLUMNS, place, sizeof place));
}

static bool leaves_core(const struct act *act)
{
    return act->did == DID_KILLED &&
           (act->value == SIGSEGV || act->value == SIGBUS || act->value == SIGFPE ||
            act->value == SIGILL || act->value == SIGABRT);
}

enum { LAST_CALLS = 256 /* back from the end; a tear-down makes a few calls of its own */ };

static void read_last_line(struct trace *trace, int process, sqlite3 *database, int own,
                           struct shown_frames *where)
{
    static const char sql[] = "SELECT stack, flags & 1 FROM event WHERE process = ?1 AND phase = 1 "
                              "AND stack <> 0 ORDER BY seq DESC LIMIT ?2";
    sqlite3_stmt *row = NULL;
    struct shown_frames found;
    uint64_t last = 0;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK)
        return;
    sqlite3_bind_int(row, 1, own);
    sqlite3_bind_int(row, 2, LAST_CALLS);
    for (bool is_found = false; !is_found && sqlite3_step(row) == SQLITE_ROW;) {
        uint64_t stack = (uint64_t)sqlite3_column_int64(row, 0);
        if (stack == last)
            continue;
        last = stack;
        site_shown_frames(trace, process, stack, sqlite3_column_int(row, 1), &found);
        is_found = found.shown >= 0 && site_is_of_program(&found.frame[found.shown]);
        if (is_found)
            *where = found;
    }
    sqlite3_finalize(row);
}

static bool is_leaving(const struct finding_side *side)
{
    return side->act.did == DID_LEFT || side->now.did == DID_RUNNING_DESTROYED ||
           side->act.did == DID_ENDING || (side->act.did == DID_EXITED && !side->act.value);
}

void finding_culprit_last_line(struct trace *trace, const struct finding *finding,
                               struct shown_frames *where)
{
    const struct finding_side *side = &finding->side[finding_culprit(finding)];
    bool is_known = where->shown >= 0 && site_is_of_program(&where->frame[where->shown]);
    bool is_in_no_line = where->count && where->shown < 0 && side->now.did == DID_RUNNING;
    if (is_known || side->process < 0 || !(is_leaving(side) || is_in_no_line))
        return;
    for (int database = 0; database < trace_database_count(trace); database++)
        for (int own = 0; own < trace_database_processes(trace, database); own++)
            if (trace_process_of(trace, database, own) == side->process)
                read_last_line(trace, side->process, trace_database(trace, database), own, where);
}

/* How the ranks ended, and where they were before. */
static void add_end(struct text *text, const struct finding_side *side,
                    const struct shown_frames *where, int pid)
{
    text_add(text, " %s", side->call);
    append_place(text, " after ", where);
    if (leaves_core(&side->act) && pid > 0)
        text_add(text, "; core: coredumpctl gdb %d", pid);
}

char *finding_culprit_words(struct trace *trace, const struct finding *finding,
                            const struct shown_frames *where, uint64_t waited_ns,
                            char text[CULPRIT_BYTES])
{
    const struct finding_side *side = &finding->side[finding_culprit(finding)];
    bool is_one = rankset_count(&side->ranks) == 1, has_process = side->process >= 0 && is_one;
    char ranks[160], duration[64];
    struct text words = {0};
    text_add(&words, "%s", rankset_words(&side->ranks, ranks, sizeof ranks));
    if (has_process)
        append_process(&words, trace, side->process);
    if (did_end(side->act.did) || side->act.did == DID_ENDING || side->act.did == DID_LEFT)
        add_end(&words, side, where, has_process ? trace_process(trace, side->process)->pid : 0);
    else if (where->shown >= 0)
        append_place(&words, is_one ? " is in " : " are in ", where);
    else
        text_add(&words, ": %s", *side->where ? side->where : side->call);
    if (waited_ns && !did_end(side->act.did))
        text_add(&words, ", %s", moment_duration(waited_ns, duration, sizeof duration));
    char *whole = text_take(&words);
    snprintf(text, CULPRIT_BYTES, "%s", whole ? whole : "");
    free(whole);
    return text;
}
