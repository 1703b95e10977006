/* options.c: parses a command's options by its table and prints its --help; --keep. */
#include "cmd/options/options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "cmd/commands.h"
#include "cmd/options/option_table.h"

enum { NAME_MAX_LENGTH = 40, HELP_COLUMN = 32, HELP_LEAST = 60, HELP_WIDTH = 100 };

static int minimum(int a, int b)
{
    return a < b ? a : b;
}

/* Levenshtein's distance; names longer than NAME_MAX_LENGTH are far from everything. */
static int distance(const char *a, const char *b)
{
    size_t length = strlen(b);
    if (strlen(a) > NAME_MAX_LENGTH || length > NAME_MAX_LENGTH)
        return NAME_MAX_LENGTH;
    int row[NAME_MAX_LENGTH + 1];
    for (size_t j = 0; j <= length; j++)
        row[j] = (int)j;
    for (size_t i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= length; j++) {
            int above = row[j];
            row[j] = minimum(minimum(above, row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[length];
}

const char *options_nearest(const char *name, const char *const *names)
{
    const char *nearest = NULL;
    int best = NAME_MAX_LENGTH;
    for (; *names; names++) {
        int d = distance(name, *names);
        bool is_prefix = strlen(name) >= 2 && strncmp(*names, name, strlen(name)) == 0;
        if (is_prefix)
            d = minimum(d, 1);
        if (d < best && d <= 1 + (int)strlen(name) / 3) {
            best = d;
            nearest = *names;
        }
    }
    return nearest;
}

int options_usage_error(const struct command_options *options, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "ddpcheck %s: error: ", options->command);
    vfprintf(stderr, format, args);
    fprintf(stderr, ". See 'ddpcheck %s --help'.\n", options->command);
    va_end(args);
    return STATUS_USAGE;
}

int command_fail(const struct error *err)
{
    fflush(stdout);
    fprintf(stderr, "ddpcheck: %s\n", err->text);
    return STATUS_USAGE;
}

/* That of the terminal, as far as it is one and lines stay readable. */
static int help_width(FILE *out)
{
    struct winsize size;
    if (fileno(out) < 0 || ioctl(fileno(out), TIOCGWINSZ, &size) < 0 || size.ws_col == 0 ||
        size.ws_col > HELP_WIDTH)
        return HELP_WIDTH;
    return size.ws_col < HELP_LEAST ? HELP_LEAST : size.ws_col;
}

/* A line from `column` to the width, in as many lines as its words need. */
static void print_words(const char *text, size_t length, int column, FILE *out)
{
    const size_t room = (size_t)(help_width(out) - column);
    while (length > room) {
        size_t bytes = room;
        while (bytes > 0 && text[bytes] != ' ')
            bytes--;
        bytes = bytes ? bytes : strcspn(text, " \n"); /* a long word */
        if (bytes >= length)
            break;
        fprintf(out, "%.*s\n%*s", (int)bytes, text, column, "");
        text += bytes + 1;
        length -= bytes + 1;
    }
    fprintf(out, "%.*s\n", (int)length, text);
}

/* Lines as they are, but for those that are too long. */
static void print_lines(const char *text, FILE *out)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        print_words(text, length, 0, out);
        text += length + (text[length] == '\n');
    }
}

static void print_entry(const struct option_entry *entry, FILE *out)
{
    char left[96];
    int used = entry->short_name
                   ? snprintf(left, sizeof left, "  -%c, --%s", entry->short_name, entry->name)
                   : snprintf(left, sizeof left, "      --%s", entry->name);
    if (entry->argument)
        used += snprintf(left + used, sizeof left - (size_t)used, " %s", entry->argument);
    if (used < HELP_COLUMN)
        fprintf(out, "%-*s", HELP_COLUMN, left);
    else
        fprintf(out, "%s\n%*s", left, HELP_COLUMN, "");
    print_words(entry->help, strlen(entry->help), HELP_COLUMN, out);
}

void options_print_help(const struct command_options *options, FILE *out)
{
    fprintf(out, "Usage: ddpcheck %s%s%s%s\n\n", options->command,
            options->count ? " [options]" : "", options->arguments[0] ? " " : "",
            options->arguments);
    print_lines(options->summary, out);
    fputs("\nOptions:\n", out);
    for (int i = 0; i < options->count; i++)
        if (options->entries[i].help)
            print_entry(&options->entries[i], out);
    print_entry(&(struct option_entry){"help", 'h', OPTION_FLAG, NULL, "show this help", NULL},
                out);
    if (options->details) {
        fputc('\n', out);
        print_lines(options->details, out);
    }
}

static int unknown_option(const struct command_options *options, const char *given, size_t length)
{
    char name[NAME_MAX_LENGTH + 1];
    const char **names = calloc((size_t)options->count + 2, sizeof *names);
    snprintf(name, sizeof name, "%.*s", (int)length, given);
    const char *nearest = NULL;
    if (names) {
        for (int i = 0; i < options->count; i++)
            names[i] = options->entries[i].name;
        names[options->count] = "help";
        nearest = options_nearest(name, names);
        free(names);
    }
    return nearest
               ? options_usage_error(options, "no option --%s (did you mean --%s?)", name, nearest)
               : options_usage_error(options, "no option --%s", name);
}

static bool parse_choice(const char *words, const char *text, int *value)
{
    for (int index = 0;; index++) {
        size_t length = strcspn(words, "|");
        if (strlen(text) == length && strncmp(words, text, length) == 0) {
            *value = index;
            return true;
        }
        if (!words[length])
            return false;
        words += length + 1;
    }
}

static bool parse_number(const char *text, long *value)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (end == text || *end || errno || number < 0)
        return false;
    *value = number;
    return true;
}

static bool parse_seconds(const char *text, double *value)
{
    char *end;
    double number = strtod(text, &end);
    if (end != text && strcmp(end, "s") == 0)
        end++;
    if (end == text || *end || !isfinite(number) || number < 0 || number > 1e9)
        return false;
    *value = number;
    return true;
}

/* Stores the argument of an option. */
static int set_value(const struct command_options *options, const struct option_entry *entry,
                     const char *text)
{
    switch (entry->kind) {
    case OPTION_FLAG:
        *(bool *)entry->value = true;
        return OPTIONS_GO;
    case OPTION_TEXT:
        *(const char **)entry->value = text;
        return OPTIONS_GO;
    case OPTION_NUMBER:
        if (parse_number(text, entry->value))
            return OPTIONS_GO;
        return options_usage_error(options, "--%s needs a number, not '%s'", entry->name, text);
    case OPTION_SECONDS:
        if (parse_seconds(text, entry->value))
            return OPTIONS_GO;
        return options_usage_error(options, "--%s needs a number of seconds, not '%s'", entry->name,
                                   text);
    case OPTION_CHOICE:
        if (parse_choice(entry->argument, text, entry->value))
            return OPTIONS_GO;
        return options_usage_error(options, "--%s is one of %s, not '%s'", entry->name,
                                   entry->argument, text);
    }
    return OPTIONS_GO;
}

/* Reads a long option at argv[*at]. */
static int parse_long(const struct command_options *options, char **argv, int *at)
{
    const char *text = argv[*at] + 2;
    size_t length = strcspn(text, "=");
    const char *attached = text[length] ? text + length + 1 : NULL;
    if (length == 4 && strncmp(text, "help", 4) == 0) {
        options_print_help(options, stdout);
        return STATUS_CLEAN;
    }
    for (int i = 0; i < options->count; i++) {
        const struct option_entry *entry = &options->entries[i];
        if (strlen(entry->name) != length || strncmp(entry->name, text, length) != 0)
            continue;
        if (entry->kind == OPTION_FLAG)
            return attached ? options_usage_error(options, "--%s takes no argument", entry->name)
                            : set_value(options, entry, NULL);
        if (!attached && argv[*at + 1])
            attached = argv[++*at];
        if (!attached)
            return options_usage_error(options, "--%s needs an argument (%s)", entry->name,
                                       entry->argument);
        return set_value(options, entry, attached);
    }
    return unknown_option(options, text, length);
}

/* Reads the short options at argv[*at]: -q, -qv, -o DIR, -oDIR. */
static int parse_short(const struct command_options *options, char **argv, int *at)
{
    for (const char *text = argv[*at] + 1; *text; text++) {
        if (*text == 'h') {
            options_print_help(options, stdout);
            return STATUS_CLEAN;
        }
        const struct option_entry *entry = NULL;
        for (int i = 0; i < options->count && !entry; i++)
            if (options->entries[i].short_name == *text)
                entry = &options->entries[i];
        if (!entry)
            return options_usage_error(options, "no option -%c", *text);
        if (entry->kind == OPTION_FLAG) {
            set_value(options, entry, NULL);
            continue;
        }
        const char *argument = text[1] ? text + 1 : NULL;
        if (!argument && argv[*at + 1])
            argument = argv[++*at];
        if (!argument)
            return options_usage_error(options, "-%c needs an argument (%s)", *text,
                                       entry->argument);
        return set_value(options, entry, argument);
    }
    return OPTIONS_GO;
}

int options_parse(const struct command_options *options, int *argc, char ***argv)
{
    char **words = *argv;
    int arguments = 0;
    int at = 1;
    if (*argc == 2 && strncmp(words[1], OPTION_TABLE_WORD, strlen(OPTION_TABLE_WORD)) == 0)
        return option_table_print(options, words[1] + strlen(OPTION_TABLE_WORD), stdout);
    for (; at < *argc; at++) {
        const char *word = words[at];
        if (strcmp(word, "--") == 0) {
            at++;
            break;
        }
        if (word[0] != '-' || !word[1]) {
            if (options->stop_at_argument)
                break;
            words[arguments++] = words[at];
            continue;
        }
        int status = word[1] == '-' ? parse_long(options, words, &at)
                                    : parse_short(options, words, &at);
        if (status != OPTIONS_GO)
            return status;
    }
    while (at < *argc)
        words[arguments++] = words[at++];
    words[arguments] = NULL;
    *argc = arguments;
    return OPTIONS_GO;
}

/* --- --keep --- */

const char *keep_usual(void)
{
    const char *text = getenv("DDPCHECK_KEEP");
    struct keep_limits limits;
    if (!text || !*text)
        return KEEP_DEFAULT;
    if (keep_parse(text, &limits) == 0)
        return text;
    /* Recording goes on: nobody may read the usage of a collector that the shim starts. */
    fprintf(stderr, "ddpcheck: DDPCHECK_KEEP=%s is no size and age, such as 20G,2d: %s is kept\n",
            text, KEEP_DEFAULT);
    return KEEP_DEFAULT;
}

int keep_usage_error(const struct command_options *options, const char *text)
{
    return options_usage_error(options,
                               "--keep needs a size of at least 1M and may have an age, such as "
                               "20G or 20G,2d, or 'all', not '%s'",
                               text);
}
