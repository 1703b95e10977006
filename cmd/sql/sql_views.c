/* sql_views.c: see sql_views.h. The order is that in which people need them. */
#include "cmd/sql/sql_views.h"

#include <string.h>

enum { NAME_WIDTH = 18, LINE_WIDTH = 100 };

static const struct {
    const char *name, *help;
} views[] = {
    {"v_finding", "a side of a finding, with its place in the program"},
    {"v_collective", "a collective, send or receive, with when it returned"},
    {"v_wait", "a host call that waits for the device"},
    {"v_member", "a member of a communicator"},
    {"v_memory", "an allocation or release"},
    {"v_launch", "a kernel launch"},
    {"v_hash", "what --hash found in a buffer: hash, NaN and Inf counts"},
    {"v_progress", "how far a stream's collectives were when the collector looked"},
    {"v_thread_stack", "a frame of a thread, as it stood when the job hung"},
    {"v_not_checked", "a check that could not run, and why"},
    {"v_dropped", "what was dropped of a process to stay within --keep"},
    {"v_digest", "1,024 collectives of a member that were dropped: counts, hash, durations"},
    {"v_event", "any record, with its call's name and rank"},
    {"ranked_process", "a process, with the rank that people know"},
    {"meta", "a fact about the trace: schema, collector, host, clock"},
    {"process", "a watched process"},
    {"ranked_process", "a watched process with its rank in the job, also without a launcher's"},
    {"event", "a record, as the shim wrote it (lib/trace/record.h)"},
    {"dropped", "how much was dropped of a process (v_dropped)"},
    {"finding", "a finding"},
    {"finding_side", "a side of a finding: ranks that agree"},
    {"finding_act", "what a side of a finding did, or where it is now, as fields"},
    {"finding_call", "a call that such an act is about, waits for or is queued behind"},
    {"comm_label", "what the program calls its communicators, where it has named them"},
    {"finding_comm", "what people call the communicators of such calls"},
    {"member_state", "the final state of a member of a communicator"},
    {"process_state", "the final state of a process"},
    {"wait_state", "a line of the wait-for tree"},
    {"speed_state", "how a rank stands beside its peers: lag, share, kind, trend"},
    {"operation_block", "the hash of 1,024 operations of a member, to find where ranks differ"},
    {"operation_digest", "what 1,024 collectives that were dropped were (v_digest)"},
    {"member_start", "where the collectives of a member begin, if some were dropped"},
    {"string", "an interned text"},
    {"stack", "a frame of an interned call stack"},
    {"python", "a Python frame of an interned call stack"},
    {"module", "a file mapped into a process"},
    {"setting", "a variable that a process read, or a fact about its host"},
    {"library", "the version of a library that a process has loaded"},
    {"symbol", "an address with its function, file and line"},
    {"inlined", "a function that the one of a symbol was inlined into"},
    {"imported", "a file that was imported"},
    {"lack", "a kind of fact that a source can lack, and the checks that need it"},
    {"api", "a call's number, name and class"},
    {"datatype", "a datatype's number and name"},
    {"redop", "a reduction's number and name"},
    {"ring_position", "how far the collector has read a ring"},
};

enum { VIEWS = sizeof views / sizeof views[0] };

/* What a row of a view or table of ours is; NULL of others. */
static const char *sql_view_help(const char *name)
{
    for (int i = 0; i < VIEWS; i++)
        if (strcmp(views[i].name, name) == 0)
            return views[i].help;
    return NULL;
}

static int print_columns(sqlite3 *database, const char *name, FILE *out)
{
    sqlite3_stmt *statement;
    int at = LINE_WIDTH;
    if (sqlite3_prepare_v2(database, "SELECT name FROM pragma_table_info(?)", -1, &statement,
                           NULL) != SQLITE_OK)
        return -1;
    sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *column = (const char *)sqlite3_column_text(statement, 0);
        int width = (int)strlen(column) + 2;
        if (at + width > LINE_WIDTH) {
            fprintf(out, "%s%*s", at < LINE_WIDTH ? ",\n" : "", NAME_WIDTH, "");
            at = NAME_WIDTH;
        } else {
            fputs(", ", out);
        }
        fputs(column, out);
        at += width;
    }
    putc('\n', out);
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? 0 : -1;
}

static int print_view(sqlite3 *database, const char *name, FILE *out)
{
    const char *help = sql_view_help(name);
    fprintf(out, "%-*s%s%s\n", NAME_WIDTH, name, strlen(name) >= NAME_WIDTH ? "  " : "",
            help ? help : "");
    return print_columns(database, name, out);
}

/* Those of ours in our order, then what else there is. */
static int print_kind(sqlite3 *database, const char *kind, FILE *out)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(database,
                           "SELECT name FROM sqlite_schema WHERE type = ?1 AND name NOT LIKE "
                           "'sqlite@_%' ESCAPE '@' "
                           "AND (?2 IS NULL OR name = ?2) ORDER BY name",
                           -1, &statement, NULL) != SQLITE_OK)
        return -1;
    int code = SQLITE_DONE;
    for (int i = 0; i <= VIEWS && code == SQLITE_DONE; i++) {
        sqlite3_reset(statement);
        sqlite3_bind_text(statement, 1, kind, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, i < VIEWS ? views[i].name : NULL, -1, SQLITE_STATIC);
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
            const char *name = (const char *)sqlite3_column_text(statement, 0);
            if (i < VIEWS || !sql_view_help(name))
                if (print_view(database, name, out) < 0) {
                    sqlite3_finalize(statement);
                    return -1;
                }
        }
    }
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? 0 : -1;
}

int sql_views_print(sqlite3 *database, FILE *out, struct error *err)
{
    fputs("Views: a row is\n", out);
    int result = print_kind(database, "view", out);
    fputs("\nTables: a row is\n", out);
    if (result == 0)
        result = print_kind(database, "table", out);
    return result == 0 ? 0 : error_set(err, "can't list the views: %s", sqlite3_errmsg(database));
}
