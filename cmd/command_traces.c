/* command_traces.c: fetches and imports what commands that read traces are given. */
#include "cmd/command_traces.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/import_run.h"
#include "lib/base/partial_file.h"
#include "lib/base/text.h"
#include "lib/trace/trace.h"

static bool is_to_import(const char *argument)
{
    return !strcmp(argument, "-") || (!job_copy_is_address(argument) && trace_is_strange(argument));
}

static int name_database(struct command_traces *traces, struct error *err)
{
    static const char end[] = ".db";
    const char *place = getenv("TMPDIR");
    if (snprintf(traces->imported, sizeof traces->imported, "%s/ddpcheck-import-XXXXXX%s",
                 place && *place ? place : "/tmp", end) >= (int)sizeof traces->imported)
        return error_set(err, "TMPDIR is too long");
    int file = mkstemps(traces->imported, (int)strlen(end));
    if (file < 0) {
        error_set(err, "can't create %s: %m: set TMPDIR to a writable directory", traces->imported);
        traces->imported[0] = '\0';
        return -1;
    }
    close(file);
    unlink(traces->imported); /* the import makes it anew */
    return 0;
}

/* "rank0.log, rank1.log". NULL when memory is short. */
static char *join_arguments(const char *const *argument, int count, const char *between)
{
    struct text text = {0};
    for (int i = 0; i < count; i++)
        text_add(&text, "%s%s", i ? between : "",
                 strcmp(argument[i], "-") ? argument[i] : "standard input");
    return text_take(&text);
}

static int import_arguments(struct command_traces *traces, const char *const *argument, int count,
                            struct error *err)
{
    struct import_result result;
    struct import_verdict verdict; /* stored, which the TUI and SQL read */
    traces->imported_name = join_arguments(argument, count, ", ");
    if (!traces->imported_name)
        return error_memory(err, "can't import");
    if (name_database(traces, err))
        return -1;
    if (import_run(argument, count, traces->imported, NULL, true, &result, &verdict, err)) {
        struct stat status;
        if (count == 1 && !stat(argument[0], &status) && S_ISDIR(status.st_mode))
            return trace_find_database(argument[0], err); /* why it is no trace says more */
        return error_prefix(err, "%s %s not a trace", traces->imported_name,
                            count == 1 ? "is" : "are");
    }
    partial_file_begin(traces->imported); /* goes with the command */
    fprintf(stderr,
            "ddpcheck: %s %s no trace: imported for this command only ('ddpcheck import' keeps "
            "it)\n",
            traces->imported_name, count == 1 ? "is" : "are");
    return 0;
}

/* Takes out of argv what is to be imported; the database takes the place of the first of it. */
static int import_strange(struct command_traces *traces, char **argv, int *argc, struct error *err)
{
    const char **argument = calloc((size_t)*argc + 1, sizeof *argument);
    int count = 0, left = 0;
    if (!argument)
        return error_memory(err, "can't import");
    for (int i = 0; i < *argc; i++) {
        bool is_strange = is_to_import(argv[i]), is_first = is_strange && !count;
        if (is_strange)
            argument[count++] = argv[i];
        if (is_first || !is_strange)
            argv[left++] = is_first ? traces->imported : argv[i];
    }
    *argc = left;
    int result = count ? import_arguments(traces, argument, count, err) : 0;
    free(argument);
    return result;
}

int command_traces_open(struct command_traces *traces, char **argv, int *argc, struct error *err)
{
    *traces = (struct command_traces){.imported = ""};
    *err = (struct error){{0}};
    if (!import_strange(traces, argv, argc, err) &&
        !job_copies_open(&traces->copies, argv, *argc, err))
        return 0;
    command_traces_close(traces);
    return -1;
}

void command_traces_close(struct command_traces *traces)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    job_copies_close(&traces->copies);
    free(traces->imported_name);
    if (!traces->imported[0])
        return;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char path[PATH_MAX + 16];
        snprintf(path, sizeof path, "%s%s", traces->imported, ends[i]);
        unlink(path);
    }
    partial_file_end();
}

const char *command_traces_name(const struct command_traces *traces, const char *path)
{
    bool is_imported = traces->imported[0] && !strcmp(traces->imported, path);
    return is_imported ? traces->imported_name : job_copies_name(&traces->copies, path);
}
