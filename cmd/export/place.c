/* place.c: finds a finding's source location relative to the user's checkout. */
#include "cmd/export/place.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/report/report_culprit.h"
#include "lib/base/path.h"
#include "lib/finding/finding_site.h"

int place_check_prefix(const char *src_prefix, struct error *err)
{
    for (const char *item = src_prefix; item && *item;) {
        size_t length = strcspn(item, ",");
        const char *equals = memchr(item, '=', length);
        if (!equals || equals == item)
            return error_set(
                err, "--src-prefix needs FROM=TO, not '%.*s': --src-prefix /workspace/job=src",
                (int)length, item);
        item += length + (item[length] == ',');
    }
    return 0;
}

/* If `file` lies in the directory at `from`, what is below it. */
static const char *below(const char *file, const char *from, size_t length)
{
    while (length > 1 && from[length - 1] == '/')
        length--;
    if (length == 0 || strncmp(file, from, length))
        return NULL;
    if (from[length - 1] == '/')
        return file + length;
    return file[length] == '/' ? file + length + 1 : NULL;
}

static bool map_prefix(const char *src_prefix, const char *file, char path[PATH_MAX])
{
    for (const char *item = src_prefix; item && *item;) {
        size_t length = strcspn(item, ",");
        const char *equals = memchr(item, '=', length);
        const char *rest = equals ? below(file, item, (size_t)(equals - item)) : NULL;
        if (rest) {
            int to = (int)(item + length - equals - 1);
            bool joined = to == 0 || equals[to] == '/';
            snprintf(path, PATH_MAX, "%.*s%s%s", to, equals + 1, joined ? "" : "/", rest);
            return true;
        }
        item += length + (item[length] == ',');
    }
    return false;
}

char *place_path(const struct export *export, const char *file, char path[PATH_MAX])
{
    char here[PATH_MAX];
    char plain[PATH_MAX];
    snprintf(plain, sizeof plain, "%s", file);
    path_normalize(plain);
    if (map_prefix(export->src_prefix, plain, path))
        return path;
    const char *rest = getcwd(here, sizeof here) ? below(plain, here, strlen(here)) : NULL;
    snprintf(path, PATH_MAX, "%s", rest ? rest : plain);
    return path;
}

static void place_of_frame(const struct export *export, const struct frame *frame,
                           struct export_place *place)
{
    place_path(export, frame->file, place->path);
    place->line = frame->line > 0 ? frame->line : 1;
    snprintf(place->function, sizeof place->function, "%s", frame->function);
    place->exact = true;
}

bool place_of_side(const struct export *export, const struct finding *finding, int side,
                   struct export_place *place)
{
    struct shown_frames frames;
    finding_side_frames(export->report->trace, finding, side, SIDE_STACK_ACT, &frames);
    if (frames.shown < 0)
        return false;
    place_of_frame(export, &frames.frame[frames.shown], place);
    return true;
}

/* The first word of a command line that names a Python script, cut out; false if none does. */
static bool script_of(const char *command, char *path, size_t bytes)
{
    for (const char *word = command; *word; word += strspn(word, " ")) {
        size_t length = strcspn(word, " ");
        if (length > 3 && *word != '-' && !strncmp(word + length - 3, ".py", 3)) {
            snprintf(path, bytes, "%.*s", (int)length, word);
            return true;
        }
        word += length;
    }
    return false;
}

void place_of_finding(const struct export *export, const struct finding *finding,
                      struct export_place *place)
{
    char script[PATH_MAX] = "";
    *place = (struct export_place){.line = 1};
    struct shown_frames frames;
    if (culprit_frames(export->report, finding, &frames) >= 0 && frames.shown >= 0) {
        place_of_frame(export, &frames.frame[frames.shown], place);
        return;
    }
    for (int i = 0; i < finding->sides; i++)
        if (place_of_side(export, finding, i, place))
            return;
    for (int i = -1; i < trace_process_count(export->report->trace); i++) {
        int process = i;
        if (i < 0 && finding->sides)
            process = finding->side[0].process;
        if (process < 0)
            continue;
        const struct process_info *info = trace_process(export->report->trace, process);
        if (script_of(info->command, script, sizeof script) ||
            snprintf(script, sizeof script, "%s", info->program) > 0)
            break;
    }
    place_path(export, *script ? script : "unknown", place->path);
}
