/* options.h: reads a command's options from a table; the same table gives its --help, manual page
 * and completions.
 *
 *     bool quiet = false;
 *     double timeout = 0;
 *     int color = 0;
 *     const struct option_entry entries[] = {
 *         {"quiet", 'q', OPTION_FLAG, NULL, "print errors only", &quiet},
 *         {"timeout", 0, OPTION_SECONDS, "S", "end the job after S seconds without progress",
 * &timeout}, OPTION_COLOR(&color),
 *     };
 *     const struct command_options options = {.command = "run", .arguments = "-- PROGRAM
 * [ARGUMENT...]", .summary = "Runs a program and watches it.", .entries = entries, .count =
 * OPTION_COUNT(entries)}; int status = options_parse(&options, &argc, &argv); if (status !=
 * OPTIONS_GO) return status;
 *     // argv[0 .. argc-1] are the arguments now
 */
#ifndef DDPCHECK_OPTIONS_H
#define DDPCHECK_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "lib/base/error.h"
#include "lib/trace/keep.h"

enum option_kind {
    OPTION_FLAG,    /* bool *: true if given */
    OPTION_TEXT,    /* const char **: the argument, the caller's argv */
    OPTION_NUMBER,  /* long *: a decimal number >= 0 */
    OPTION_SECONDS, /* double *: seconds >= 0, fractions allowed */
    OPTION_CHOICE   /* int *: which of the words in `argument`, "off|nccl|all", from 0 */
};

struct option_entry {
    const char *name; /* "timeout": --timeout 3, --timeout=3 */
    char short_name;  /* 't': -t 3, -t3; 0 none */
    enum option_kind kind;
    const char
        *argument;    /* name of the argument in --help; the words of a choice; NULL for a flag */
    const char *help; /* NULL: for ddpcheck's own use, --help does not show it */
    void *value;      /* left alone if the option is not given */
};

/* For commands with coloured output; the value is an enum color_when (lib/base/terminal.h). */
#define OPTION_COLOR(value)                                                                       \
    {                                                                                             \
        "color", 0, OPTION_CHOICE, "auto|always|never", "color the output (default: auto)", value \
    }
#define OPTION_COUNT(entries) ((int)(sizeof(entries) / sizeof(entries)[0]))

struct command_options {
    const char *command;   /* "run" */
    const char *arguments; /* for the usage line: "[DIR...]" */
    const char *summary;   /* one sentence for --help */
    const char *details;   /* more text after the options; NULL none */
    const struct option_entry *entries;
    int count;
    bool stop_at_argument; /* what follows the first argument belongs to a program */
};

enum { OPTIONS_GO = -1 };

/* Reads argv[1..]; "--" ends the options. Leaves the arguments in *argv, *argc (the array is the
 * caller's, reordered). Returns OPTIONS_GO, or the exit status: STATUS_CLEAN after --help,
 * STATUS_USAGE after a wrong option, about which it printed a line on stderr. The table itself, for
 * manual pages and completions, is printed on --option-table=FORMAT (option_table.h): let a command
 * parse before it does anything. */
int options_parse(const struct command_options *options, int *argc, char ***argv);

/* Writes what --help prints. */
void options_print_help(const struct command_options *options, FILE *out);

/* Says on stderr what is wrong with the use of the command and how to learn more. Returns
 * STATUS_USAGE. */
int options_usage_error(const struct command_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints why the command failed, after what it printed before. Returns STATUS_USAGE. */
int command_fail(const struct error *err);

/* The name of the NULL-ended list that a mistyped `name` most likely meant, or NULL. */
const char *options_nearest(const char *name, const char *const *names);

/* --keep, of the commands that record. */

/* value: const char **, for serve_metrics_start. */
#define OPTION_METRICS(value)                                                                      \
    {                                                                                              \
        "metrics", 0, OPTION_TEXT, "ADDRESS:PORT|FILE.prom",                                       \
            "meanwhile serve the page and its /metrics there, as 'ddpcheck serve' does, or write " \
            "the metrics into a file",                                                             \
            value                                                                                  \
    }

/* value: const char **, to be read with keep_parse. */
#define OPTION_KEEP(value)                                                      \
    {                                                                           \
        "keep", 0, OPTION_TEXT, "SIZE[,AGE]",                                   \
            "drop the oldest records beyond this size and age: 5G; 5G,2d; all " \
            "(default: " KEEP_DEFAULT ")",                                      \
            value                                                               \
    }

/* DDPCHECK_KEEP, which a collector started by the shim goes by, or the default. */
const char *keep_usual(void);
/* Says that `text` is no argument of --keep. Returns STATUS_USAGE. */
int keep_usage_error(const struct command_options *options, const char *text);

#endif
