/* ddpcheck import: turns what other tools recorded (Flight Recorder dumps, logs, profiles) into a
 * trace. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/import_run.h"
#include "cmd/options/options.h"
#include "lib/import/import.h"

enum { FORMATS_BYTES = 512 };

struct import_request {
    const char *output;
    const char *format;
    bool quiet;
};

static void list_import_formats(char *text, size_t bytes)
{
    size_t at = (size_t)snprintf(
        text, bytes, "Formats (--format; by default each file's beginning shows its format):\n");
    for (const struct import_source *const *source = import_sources; *source && at < bytes;
         source++)
        at += (size_t)snprintf(text + at, bytes - at, "  %-16s %s\n", (*source)->name,
                               (*source)->title);
    if (at < bytes)
        snprintf(
            text + at, bytes - at,
            "\nExit status: 0 all was imported; 2 usage error, or something could not be read (the "
            "rest is there).\n");
}

static int unknown_format(const struct command_options *options, const char *format)
{
    const char *names[32] = {NULL};
    for (int i = 0; import_sources[i] && i < 31; i++)
        names[i] = import_sources[i]->name;
    const char *nearest = options_nearest(format, names);
    if (nearest)
        return options_usage_error(options, "no format '%s' (did you mean '%s'?)", format, nearest);
    char all[512] = "";
    for (int i = 0; names[i]; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? "|" : "", names[i]);
    return options_usage_error(options, "--format is one of %s, not '%s'", all, format);
}

static void print_import_result(const struct import_result *result,
                                const struct import_verdict *verdict, const char *output)
{
    printf("%llu %s of %llu %s and %llu %s from %llu %s are in %s\n",
           (unsigned long long)result->records, result->records == 1 ? "record" : "records",
           (unsigned long long)result->processes, result->processes == 1 ? "process" : "processes",
           (unsigned long long)result->communicators,
           result->communicators == 1 ? "communicator" : "communicators",
           (unsigned long long)result->files, result->files == 1 ? "file" : "files", output);
    if (verdict->errors + verdict->warnings)
        printf("%d %s, %d %s: ddpcheck report %s\n", verdict->errors,
               verdict->errors == 1 ? "error" : "errors", verdict->warnings,
               verdict->warnings == 1 ? "warning" : "warnings", output);
    if (result->refused_files)
        fprintf(stderr, "ddpcheck: %llu of %llu %s could not be read, or not to the end\n",
                (unsigned long long)result->refused_files, (unsigned long long)result->files,
                result->files == 1 ? "file" : "files");
}

static int import(const char *const *paths, int count, const struct import_request *request,
                  const struct import_source *source)
{
    struct import_verdict verdict;
    struct import_result result;
    struct error err = {{0}};
    if (import_run(paths, count, request->output, source, !request->quiet, &result, &verdict, &err))
        return command_fail(&err);
    if (!request->quiet)
        print_import_result(&result, &verdict, request->output);
    return result.refused_files ? STATUS_USAGE : STATUS_CLEAN;
}

/* A pipe, or a file that the shell put there: not a terminal, nor /dev/null. */
static bool is_stdin_given(void)
{
    struct stat file;
    return fstat(STDIN_FILENO, &file) == 0 && !S_ISCHR(file.st_mode);
}

int command_import(int argc, char **argv)
{
    struct import_request request = {.output = "imported.db"};
    char formats[FORMATS_BYTES];
    list_import_formats(formats, sizeof formats);
    const struct option_entry entries[] = {
        {"output", 'o', OPTION_TEXT, "DATABASE",
         "the trace to create (default: imported.db); it must not exist yet", &request.output},
        {"format", 0, OPTION_TEXT, "FORMAT", "what the files are (default: auto)", &request.format},
        {"quiet", 'q', OPTION_FLAG, NULL, "print errors only", &request.quiet},
    };
    const struct command_options options = {
        .command = "import",
        .arguments = "[FILE|DIR...]",
        .summary =
            "Creates a trace from what other tools recorded, for `ddpcheck report` and `tui` "
            "(docs/import.md).\n"
            "Directories and archives are searched, packed files unpacked; without FILE, or for "
            "-, the standard input is read.",
        .entries = entries,
        .count = OPTION_COUNT(entries),
        .details = formats,
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    struct stat file;
    const struct import_source *source = NULL;
    if (argc == 0 && !is_stdin_given())
        return options_usage_error(&options, "name files or directories to import");
    if (request.format && strcmp(request.format, "auto") &&
        !(source = import_source_find(request.format)))
        return unknown_format(&options, request.format);
    if (stat(request.output, &file) == 0) {
        fprintf(stderr, "ddpcheck: %s is there already; name another (-o), or remove it\n",
                request.output);
        return STATUS_USAGE;
    }
    const char *const usual[] = {"-"};
    return argc ? import((const char *const *)argv, argc, &request, source)
                : import(usual, 1, &request, source);
}
