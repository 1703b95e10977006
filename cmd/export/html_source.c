/* html_source.c: the lines of source around a call. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/export/html.h"
#include "lib/base/process_file.h"

enum { LINES_BESIDE = 2, COLUMNS_MOST = 200 };

/* What a stranger's trace names is not read: a page is sent to others. */
static bool ran_here(const struct process_info *info)
{
    char boot_id[sizeof info->boot_id] = "";
    boot_id_read(boot_id, sizeof boot_id);
    return *boot_id && !strcmp(boot_id, info->boot_id);
}

static bool is_source(const char *path)
{
    static const char *const endings[] = {".py", ".c",  ".cc",  ".cpp", ".cxx", ".cu",
                                          ".h",  ".hh", ".hpp", ".cuh", ".rs",  ".jl"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (!strcmp(dot, endings[i]))
            return true;
    return false;
}

/* NULL where there is none as it was when the job ran. */
static FILE *open_lines(const char *path, uint64_t end_ns)
{
    struct stat status;
    FILE *file = is_source(path) ? fopen(path, "re") : NULL;
    if (!file)
        return NULL;
    bool is_same = fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) &&
                   (uint64_t)status.st_mtim.tv_sec < end_ns / 1000000000;
    if (is_same)
        return file;
    fclose(file);
    return NULL;
}

void html_source(const struct html *html, int process, const struct frame *frame)
{
    const struct report *report = html->export->report;
    char *line = NULL;
    size_t room = 0;
    bool is_known = process >= 0 && frame->line > 0 &&
                    ran_here(trace_process(report->trace, process));
    FILE *file = is_known ? open_lines(frame->file, report->end_ns) : NULL;
    if (!file)
        return;
    fputs("<pre class=source>", html->out);
    for (int number = 1; number <= frame->line + LINES_BESIDE; number++) {
        if (getline(&line, &room, file) < 0)
            break;
        if (number < frame->line - LINES_BESIDE)
            continue;
        line[strcspn(line, "\n")] = '\0';
        fprintf(html->out, "%s%6d  ", number == frame->line ? "<mark>" : "", number);
        html_format(html, "%.*s", COLUMNS_MOST, line);
        fputs(number == frame->line ? "\n</mark>" : "\n", html->out);
    }
    fputs("</pre>", html->out);
    free(line);
    fclose(file);
}
