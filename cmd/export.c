/* ddpcheck export: findings and operations of traces in the formats of other tools. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/commands.h"
#include "cmd/export/export.h"
#include "cmd/export/output.h"
#include "cmd/export/place.h"
#include "cmd/command_traces.h"
#include "cmd/options/options.h"

static char usual_trace[] = "ddpcheck-trace"; /* where `ddpcheck run` puts it without -o */

enum { FORMATS_BYTES = 256, DETAILS_BYTES = 2048 };

struct export_request {
    const struct export_format *format;
    const char *path, *src_prefix;
    struct choice_options choice;
    double hang_after_s;
    bool by_host;
};

/* A write that failed is reported by the commit, which knows the file. */
static int write_to(struct output *output, const struct export *export,
                    const struct export_format *format, struct error *err)
{
    struct export complete = *export;
    complete.out = output->file;
    if (format->write(&complete, err) == 0 || ferror(output->file))
        return output_commit(output, err);
    output_abandon(output);
    return -1;
}

/* Writes the document, or leaves nothing. */
static int write_out(struct report *report, const char *const *paths, int count,
                     const struct export_request *request, struct error *err)
{
    struct output output;
    struct export export;
    int result = -1;
    if (export_begin(&export, report, paths, count, err) < 0)
        return -1;
    export.src_prefix = request->src_prefix;
    if (output_open(&output, request->path, err) == 0)
        result = write_to(&output, &export, request->format, err);
    export_end(&export);
    return result;
}

static int export_copies(const char *const *paths, int count, const struct export_request *request,
                         const struct command_traces *traces)
{
    struct report report;
    struct choice choice;
    struct error err = {{0}};
    if (place_check_prefix(request->src_prefix, &err) ||
        choice_load(&choice, &request->choice, &err))
        return command_fail(&err);
    const struct report_options options = {.hang_after_ns = (uint64_t)(request->hang_after_s * 1e9),
                                           .hosts = request->by_host ? HOSTS_APART : HOSTS_MERGED,
                                           .choice = &choice,
                                           .is_anew = true, /* speed is not kept */
                                           .traces = traces};
    if (report_load(&report, paths, count, &options, &err)) {
        choice_free(&choice);
        return command_fail(&err);
    }
    int status = write_out(&report, paths, count, request, &err) ? command_fail(&err)
                                                                 : STATUS_CLEAN;
    if (*report.damage.text)
        status = command_fail(&report.damage);
    report_free(&report);
    choice_free(&choice);
    return status;
}

static int export_paths(char **paths, int count, const struct export_request *request)
{
    struct command_traces traces;
    struct error err;
    if (command_traces_open(&traces, paths, &count, &err) < 0)
        return command_fail(&err);
    int status = export_copies((const char *const *)paths, count, request, &traces);
    command_traces_close(&traces);
    return status;
}

static bool ends_with(const char *text, const char *end, size_t bytes)
{
    size_t length = strlen(text);
    return length > bytes && !strncmp(text + length - bytes, end, bytes) &&
           text[length - bytes - 1] != '/';
}

/* The format that the file's name asks for, NULL if it has none. */
static const struct export_format *format_of_path(const char *path)
{
    for (const struct export_format *format = export_formats; path && format->name; format++)
        for (const char *end = format->extensions; *end; end += strspn(end, " ")) {
            size_t bytes = strcspn(end, " ");
            if (ends_with(path, end, bytes))
                return format;
            end += bytes;
        }
    return NULL;
}

/* "jsonl|sarif|...", and a line for each in --help. */
static void list_export_formats(char *names, char *details)
{
    size_t used = 0, reported = (size_t)snprintf(details, DETAILS_BYTES, "Formats:\n");
    *names = '\0';
    for (const struct export_format *format = export_formats; format->name; format++) {
        used += (size_t)snprintf(names + used, FORMATS_BYTES - used, "%s%s", used ? "|" : "",
                                 format->name);
        reported += (size_t)snprintf(details + reported, DETAILS_BYTES - reported, "  %-12s%s\n",
                                     format->name, format->what);
    }
    snprintf(details + reported, DETAILS_BYTES - reported,
             "\nExit status: 0 written, whatever was found; 2 usage error, or input or output that "
             "can't be\n"
             "read or written. See docs/export.md for each format.\n");
}

int command_export(int argc, char **argv)
{
    struct export_request request = {0};
    char names[FORMATS_BYTES], details[DETAILS_BYTES];
    int format = -1;
    list_export_formats(names, details);
    const struct option_entry entries[] = {
        {"format", 'f', OPTION_CHOICE, names, "default: by the suffix of FILE", &format},
        {"output", 'o', OPTION_TEXT, "FILE", "the file to write (default: -, standard output)",
         &request.path},
        CHOICE_ENTRIES(request.choice, true),
        {"src-prefix", 0, OPTION_TEXT, "FROM=TO",
         "sources recorded below FROM are now below TO; separate several by ','",
         &request.src_prefix},
        {"hang-after", 0, OPTION_SECONDS, "S",
         "seconds without progress that are a hang (default: as when recorded)",
         &request.hang_after_s},
        {"by-host", 0, OPTION_FLAG, NULL,
         "analyse each host by itself, and ask the hosts as a hub does (docs/jobs.md)",
         &request.by_host},
    };
    const struct command_options options = {
        .command = "export",
        .arguments = "[DIR|DATABASE...]",
        .summary = "Writes what is in traces in a format that other tools read. Traces of several "
                   "hosts are merged.\n"
                   "DIR defaults to ddpcheck-trace.",
        .entries = entries,
        .count = OPTION_COUNT(entries),
        .details = details,
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    request.format = format >= 0 ? &export_formats[format] : format_of_path(request.path);
    struct stat file;
    bool names_format = argc && stat(argv[0], &file) && export_format_find(argv[0]);
    if (names_format) /* ddpcheck export html trace */
        return options_usage_error(&options, "no trace '%s'; a format is given by -f %s", argv[0],
                                   argv[0]);
    if (!request.format)
        return options_usage_error(&options, "missing the format%s%s: --format %s",
                                   request.path ? ", not shown by the name " : "",
                                   request.path ? request.path : "", names);
    if (argc == 0 && stat(usual_trace, &file)) {
        fprintf(
            stderr,
            "ddpcheck: there is no trace at %s; name its directory, or record one: ddpcheck run "
            "-- PROGRAM\n",
            usual_trace);
        return STATUS_USAGE;
    }
    char *usual[] = {usual_trace};
    return argc ? export_paths(argv, argc, &request) : export_paths(usual, 1, &request);
}
