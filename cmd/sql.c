/* ddpcheck sql: asks a trace database; with a prompt where nobody gave a query. */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/command_traces.h"
#include "cmd/options/options.h"
#include "cmd/sql/sql_rows.h"
#include "cmd/sql/sql_run.h"
#include "cmd/sql/sql_views.h"
#include "lib/base/array.h"
#include "lib/trace/trace.h"

enum {
    STEPS_PER_LOOK = 20000
}; /* of SQLite's machine between two looks for a Ctrl-C: well below a millisecond */

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static int is_interrupted(void *context)
{
    (void)context;
    return interrupted;
}

/* Ctrl-C ends a query, or the line that is being typed. (sqlite3_interrupt does nothing between two
 * statements.) It is held back from now on but where it is waited for, so that none is lost just
 * before; *open is the mask with it let in. */
static void catch_interrupts(sqlite3 *database, sigset_t *open)
{
    struct sigaction action = {.sa_handler = interrupt};
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigprocmask(SIG_BLOCK, &held, open);
    sigaction(SIGINT, &action, NULL);
    sqlite3_progress_handler(database, STEPS_PER_LOOK, is_interrupted, NULL);
}

/* Waits until a line was typed; a terminal gives whole lines. False: a Ctrl-C came instead. */
static bool wait_for_line(const sigset_t *open)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    interrupted = 0;
    while (ppoll(&input, 1, NULL, open) < 0 && errno == EINTR)
        if (interrupted)
            return false;
    return true;
}

/* What is typed until it is a statement. */
struct typed {
    char *text;
    size_t length, capacity;
};

static bool append_typed(struct typed *typed, const char *line, size_t length)
{
    if (!ARRAY_RESERVE(typed->text, typed->capacity, typed->length + length + 1))
        return false;
    memcpy(typed->text + typed->length, line, length + 1);
    typed->length += length;
    return true;
}

static const char prompt_help[] = "A statement ends with ';'. Ctrl-C interrupts a query.\n"
                                  ".tables         the names of the views and tables\n"
                                  ".schema [NAME]  how they are made, or one of them\n"
                                  ".views          the views and tables, and their columns\n"
                                  ".help           this\n"
                                  ".quit           leave, as Ctrl-D does\n";

static const char tables_query[] =
    "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE "
    "'sqlite_%' ORDER BY type DESC, name";

/* "" for all of them. */
static int print_schema(sqlite3 *database, const char *name, struct error *err)
{
    char *query = sqlite3_mprintf("SELECT sql || ';' AS schema FROM sqlite_schema WHERE sql NOT "
                                  "NULL AND (name = %Q OR tbl_name = %Q OR %Q = '') "
                                  "ORDER BY type, name",
                                  name, name, name);
    int result = query ? sql_run(database, query, SQL_ROWS_CSV, stdout, err)
                       : error_set(err, OUT_OF_MEMORY);
    sqlite3_free(query);
    return result;
}

static bool is_reader_gone(const char *line)
{
    return strcmp(line, ".quit") == 0 || strcmp(line, ".exit") == 0;
}

/* Does what a line that begins with a dot asks for; it is cut up. Returns 0, or -1 with err. */
static int obey(sqlite3 *database, char *line, struct error *err)
{
    char *rest = NULL;
    const char *command = strtok_r(line, " \t\r\n;", &rest),
               *name = strtok_r(NULL, " \t\r\n;", &rest);
    if (strcmp(command, ".help") == 0)
        return fputs(prompt_help, stdout) < 0 ? error_set(err, "can't write the help") : 0;
    if (strcmp(command, ".views") == 0)
        return sql_views_print(database, stdout, err);
    if (strcmp(command, ".tables") == 0)
        return sql_run(database, tables_query, SQL_ROWS_TEXT, stdout, err);
    if (strcmp(command, ".schema") == 0)
        return print_schema(database, name ? name : "", err);
    return error_set(err, "no %s; .help lists what there is", command);
}

static void run_typed(sqlite3 *database, struct typed *typed, enum sql_rows_format format,
                      const sigset_t *open)
{
    struct error err;
    sigset_t held;
    sigprocmask(SIG_SETMASK, open, &held);
    if (sql_run(database, typed->text, format, stdout, &err) < 0) {
        fflush(stdout);
        fprintf(stderr, "%s\n", err.text);
    }
    sigprocmask(SIG_SETMASK, &held, NULL);
    typed->length = 0;
}

static int prompt(sqlite3 *database, enum sql_rows_format format)
{
    struct typed typed = {0};
    char *line = NULL;
    size_t bytes = 0;
    bool going = true;
    struct error err;
    sigset_t open;
    catch_interrupts(database, &open);
    printf("Type .help for help; a statement ends with ';'\n");
    while (going) {
        fputs(typed.length ? "     ...> " : "ddpcheck> ", stdout);
        fflush(stdout);
        if (!wait_for_line(&open)) {
            typed.length = 0;
            putchar('\n');
            continue;
        }
        ssize_t length = getline(&line, &bytes, stdin);
        if (length < 0)
            break;
        if (!typed.length && line[0] == '.') {
            line[strcspn(line, "\r\n")] = 0;
            going = !is_reader_gone(line);
            if (going && obey(database, line, &err) < 0)
                fprintf(stderr, "%s\n", err.text);
        } else if (typed.length || line[strspn(line, " \t\r\n")]) {
            if (!append_typed(&typed, line, (size_t)length))
                break;
            if (sqlite3_complete(typed.text))
                run_typed(database, &typed, format, &open);
        }
    }
    if (going)
        putchar('\n');
    free(line);
    free(typed.text);
    return STATUS_CLEAN;
}

/* A statement, or a line that begins with a dot. */
static int run_text(sqlite3 *database, const char *text, enum sql_rows_format format,
                    struct error *err)
{
    if (*text != '.')
        return sql_run(database, text, format, stdout, err);
    char *line = strdup(text);
    int result = line ? obey(database, line, err) : error_set(err, OUT_OF_MEMORY);
    free(line);
    return result;
}

/* All of stdin is the query. */
static int run_input(sqlite3 *database, enum sql_rows_format format, struct error *err)
{
    struct typed typed = {0};
    char part[65536];
    size_t got;
    while ((got = fread(part, 1, sizeof part - 1, stdin)) > 0) {
        part[got] = 0;
        if (!append_typed(&typed, part, got)) {
            free(typed.text);
            return error_set(err, OUT_OF_MEMORY);
        }
    }
    int result = ferror(stdin) ? error_set(err, "can't read the query from standard input: %s",
                                           strerror(errno))
                 : typed.text  ? run_text(database, typed.text, format, err)
                               : 0;
    free(typed.text);
    return result;
}

static int run_query(struct trace *trace, bool views, const char *query,
                     enum sql_rows_format format, struct error *err)
{
    if (trace_database_count(trace) != 1)
        return error_set(err, "%d databases (%s, %s, ...): ask one of them",
                         trace_database_count(trace), trace_database_path(trace, 0),
                         trace_database_path(trace, 1));
    sqlite3 *database = trace_database(trace, 0);
    if (sql_only_read(database, err) < 0)
        return -1;
    if (views)
        return sql_views_print(database, stdout, err);
    if (query)
        return run_text(database, query, format, err);
    return isatty(STDIN_FILENO) ? prompt(database, format) : run_input(database, format, err);
}

int command_sql(int argc, char **argv)
{
    bool views = false, json = false, csv = false;
    const struct option_entry entries[] = {
        {"views", 0, OPTION_FLAG, NULL, "list the views and tables, and their columns", &views},
        {"json", 0, OPTION_FLAG, NULL, "a JSON object per row", &json},
        {"csv", 0, OPTION_FLAG, NULL, "comma-separated values with a line of names", &csv},
    };
    const struct command_options options = {
        .command = "sql",
        .arguments = "DIR|DATABASE [QUERY]",
        .summary =
            "Queries a trace database with SQL. The database is only read; a collector may be "
            "writing it.\n"
            "Without QUERY: reads queries from standard input; on a terminal, opens a prompt.",
        .details =
            "The views whose names begin with v_ are the place to start; docs/sql.md shows "
            "questions and answers.\n\n"
            "  ddpcheck sql ddpcheck-trace \"SELECT rank, name, count(*) FROM v_collective GROUP "
            "BY 1, 2\"\n\n"
            "Exit status: 0 answered, 2 usage error, or a trace or query that can't be read.\n",
        .entries = entries,
        .count = OPTION_COUNT(entries),
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    if (argc < 1 || argc > 2)
        return options_usage_error(&options,
                                   argc ? "one query, in quotes" : "missing DIR or DATABASE");
    if (json && csv)
        return options_usage_error(&options, "--json and --csv exclude each other");
    if (views && argc == 2)
        return options_usage_error(&options, "--views takes no query");
    setlocale(LC_CTYPE, ""); /* how wide characters are */
    struct error err = {{0}};
    struct trace *trace;
    struct command_traces traces;
    if (command_traces_open(&traces, argv, &(int){1}, &err) < 0)
        return command_fail(&err);
    if (trace_open(&trace, (const char *const *)argv, 1, &err) < 0) {
        command_traces_close(&traces);
        return command_fail(&err);
    }
    enum sql_rows_format format = SQL_ROWS_TEXT;
    if (json)
        format = SQL_ROWS_JSON;
    else if (csv)
        format = SQL_ROWS_CSV;
    status = run_query(trace, views, argv[1], format, &err) < 0 ? command_fail(&err) : STATUS_CLEAN;
    trace_close(trace);
    command_traces_close(&traces);
    return status;
}
