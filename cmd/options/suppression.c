/* suppression.c: reads a suppressions file and matches findings against its lines. */
#include "cmd/options/suppression.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/options/codes.h"
#include "lib/base/array.h"
#include "lib/base/printable.h"
#include "lib/trace/site.h"

enum { KEY_FUNC, KEY_FILE, KEY_MODULE, KEY_CALL, KEY_PHASE, KEY_FINGERPRINT, KEYS };
enum { NAME_BYTES = 320 };

static const char *const keys[KEYS + 1] = {"func",  "file",        "module", "call",
                                           "phase", "fingerprint", NULL};

static int find_condition_key(const char *name)
{
    for (int i = 0; i < KEYS; i++)
        if (!strcmp(keys[i], name))
            return i;
    return -1;
}

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t bytes = strlen(text);
    while (bytes > 0 && strchr(" \t\r\n", text[bytes - 1]))
        text[--bytes] = '\0';
    return text;
}

static int bad_line(const struct suppressions *file, int line, struct error *err, const char *what,
                    const char *which)
{
    return error_set(
        err, "%s:%d: %s%s%s%s; a line is WHAT:KEY=GLOB[;KEY=GLOB...], as in DC301:func=clip_*",
        file->path, line, what, *which ? " '" : "", which, *which ? "'" : "");
}

static int parse_condition(const struct suppressions *file, struct suppression *entry, char *text,
                           struct error *err)
{
    char *glob = strchr(text, '=');
    if (!glob || !glob[1])
        return bad_line(file, entry->line, err, "no KEY=GLOB in", text);
    *glob++ = '\0';
    int key = find_condition_key(trim(text));
    if (key < 0)
        return bad_line(file, entry->line, err,
                        "the keys are func, file, module, call, phase and fingerprint, not",
                        trim(text));
    if (entry->conditions == SUPPRESSION_CONDITIONS_MAX)
        return bad_line(file, entry->line, err, "too many conditions", "");
    entry->condition[entry->conditions++] = (struct suppression_condition){key, trim(glob)};
    return 0;
}

static int parse_suppression(const struct suppressions *file, struct suppression *entry,
                             struct error *err)
{
    char *colon = strchr(entry->parts, ':'), *save, unknown[64];
    if (!colon)
        return bad_line(file, entry->line, err, "no colon in", entry->text);
    *colon = '\0';
    entry->what = trim(entry->parts);
    if (!*entry->what ||
        (strcmp(entry->what, "*") && codes_unknown(entry->what, unknown, sizeof unknown)))
        return bad_line(file, entry->line, err, "no finding has the code or category", entry->what);
    for (char *part = strtok_r(colon + 1, ";", &save); part; part = strtok_r(NULL, ";", &save))
        if (parse_condition(file, entry, part, err))
            return -1;
    return entry->conditions ? 0 : bad_line(file, entry->line, err, "no condition in", entry->text);
}

/* Adds a line of the file, unless it says nothing. */
static int read_suppression_line(struct suppressions *file, char *text, int line, struct error *err)
{
    text = trim(text);
    if (!*text || *text == '#')
        return 0;
    if (!ARRAY_ADD(file->entry, file->count))
        return error_memory(err, "can't read %s", file->path);
    struct suppression *entry = &file->entry[file->count++];
    *entry = (struct suppression){.text = strdup(text), .parts = strdup(text), .line = line};
    if (!entry->text || !entry->parts)
        return error_memory(err, "can't read %s", file->path);
    return parse_suppression(file, entry, err);
}

static int read_lines(struct suppressions *file, FILE *in, struct error *err)
{
    char *text = NULL;
    size_t room = 0;
    int line = 0, result = 0;
    errno = 0;
    for (ssize_t bytes; result == 0 && (bytes = getline(&text, &room, in)) >= 0;) {
        line++;
        result = memchr(text, '\0', (size_t)bytes)
                     ? bad_line(file, line, err, "this is no text file", "")
                     : read_suppression_line(file, text, line, err);
    }
    if (result == 0 && ferror(in))
        result =
            error_set(err, "can't read the suppressions in %s: %s", file->path, strerror(errno));
    free(text);
    return result;
}

int suppressions_load(struct suppressions *suppressions, const char *path, struct error *err)
{
    *suppressions = (struct suppressions){.path = strdup(path)};
    if (!suppressions->path)
        return error_memory(err, "can't read %s", path);
    FILE *in = fopen(path, "re");
    int result =
        in ? read_lines(suppressions, in, err)
           : error_set(err, "can't read the suppressions in %s: %s", path, strerror(errno));
    if (in)
        fclose(in);
    if (result)
        suppressions_free(suppressions);
    return result;
}

void suppressions_free(struct suppressions *suppressions)
{
    for (int i = 0; i < suppressions->count; i++) {
        free(suppressions->entry[i].text);
        free(suppressions->entry[i].parts);
    }
    free(suppressions->entry);
    free(suppressions->path);
    *suppressions = (struct suppressions){0};
}

static bool is_path(const char *glob, const char *path)
{
    if (!fnmatch(glob, path, 0))
        return true;
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
        if (!fnmatch(glob, slash + 1, 0))
            return true;
    return false;
}

static bool is_function(const char *glob, const struct frame *frame)
{
    char name[NAME_BYTES];
    if (!frame->function[0])
        return false;
    frame_function(frame, name, sizeof name);
    size_t bytes = strlen(name);
    if (bytes > 2 && !strcmp(name + bytes - 2, "()")) /* that is ours, for people */
        name[bytes - 2] = '\0';
    return !fnmatch(glob, name, 0) || !fnmatch(glob, frame->function, 0);
}

static bool frame_matches(const struct suppression_condition *condition, const struct frame *frame)
{
    switch (condition->key) {
    case KEY_FUNC:
        return is_function(condition->glob, frame);
    case KEY_FILE:
        return frame->file[0] && is_path(condition->glob, frame->file);
    default:
        return frame->module[0] && is_path(condition->glob, frame->module);
    }
}

static bool stack_matches(const struct suppression_condition *condition, struct trace *trace,
                          const struct finding_side *side)
{
    struct frame frame[SITE_FRAMES_MAX];
    int count =
        trace ? site_frames(trace, side->process, side->stack, side->stack_is_address, frame) : 0;
    for (int i = 0; i < count; i++)
        if (frame_matches(condition, &frame[i]))
            return true;
    count = trace ? site_frames(trace, side->process, side->where_stack,
                                side->where_stack_is_address, frame)
                  : 0;
    for (int i = 0; i < count; i++)
        if (frame_matches(condition, &frame[i]))
            return true;
    return false;
}

static bool is_fingerprint(const char *glob, uint64_t value)
{
    char fingerprint[24];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, value);
    return !fnmatch(glob, fingerprint, 0);
}

static bool condition_holds(const struct suppression_condition *condition,
                            const struct finding *finding, const struct finding_side *side,
                            struct trace *trace)
{
    switch (condition->key) {
    case KEY_CALL:
        return side && !fnmatch(condition->glob, side->call, 0);
    case KEY_PHASE:
        return side && !fnmatch(condition->glob, side->phase, 0);
    case KEY_FINGERPRINT:
        return is_fingerprint(condition->glob, finding->fingerprint);
    default:
        return side && stack_matches(condition, trace, side);
    }
}

static bool matches_side(const struct suppression *entry, const struct finding *finding,
                         const struct finding_side *side, struct trace *trace)
{
    for (int i = 0; i < entry->conditions; i++)
        if (!condition_holds(&entry->condition[i], finding, side, trace))
            return false;
    return true;
}

static bool matches(const struct suppression *entry, const struct finding *finding,
                    struct trace *trace)
{
    if (strcmp(entry->what, "*") && !codes_have(entry->what, finding->code))
        return false;
    for (int i = 0; i < finding->sides; i++)
        if (matches_side(entry, finding, &finding->side[i], trace))
            return true;
    return finding->sides == 0 && matches_side(entry, finding, NULL, trace);
}

struct suppression *suppressions_find(const struct suppressions *suppressions,
                                      const struct finding *finding, struct trace *trace)
{
    for (int i = 0; i < suppressions->count; i++)
        if (matches(&suppressions->entry[i], finding, trace))
            return &suppressions->entry[i];
    return NULL;
}

/* A glob that matches only the text: in names of C++ functions and arrays there are [ and *. */
static void print_literally(const char *text, FILE *out)
{
    size_t length;
    for (; *text; text += length) {
        bool prints = printable_next(text, &length);
        if (strchr("*?[]\\", *text))
            putc('\\', out);
        if (prints && *text != ';')
            fwrite(text, 1, length, out);
        else
            fprintf(out, "%.*s", (int)length, "????");
    }
}

/* The side that has a function, the first if several have. */
static const struct finding_side *side_with_site(const struct finding *finding, struct trace *trace,
                                                 struct frame *frame)
{
    struct frame frames[SITE_FRAMES_MAX];
    for (int i = 0; i < finding->sides; i++) {
        const struct finding_side *side = &finding->side[i];
        if (site_frames(trace, side->process, side->stack, side->stack_is_address, frames) > 0 &&
            frames[0].function[0]) {
            *frame = frames[0];
            return side;
        }
    }
    return NULL;
}

void suppression_print(const struct finding *finding, struct trace *trace, FILE *out)
{
    struct frame frame;
    fputs("# ", out);
    printable_put(finding->what, strlen(finding->what), out);
    const struct finding_side *side = side_with_site(finding, trace, &frame);
    fprintf(out, "\n%s:", code_name(finding->code));
    if (!side) {
        fprintf(out, "fingerprint=%016" PRIx64 "\n", finding->fingerprint);
        return;
    }
    fputs("func=", out);
    print_literally(frame.function, out);
    size_t name = strcspn(side->call, "( ");
    if (side->call[name] == '(') { /* what follows are the sizes, which change from run to run */
        char call[NAME_BYTES];
        snprintf(call, sizeof call, "%.*s", (int)name, side->call);
        fputs(";call=", out);
        print_literally(call, out);
        putc('*', out);
    }
    putc('\n', out);
}
