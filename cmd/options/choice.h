/* choice.h: which findings are reported: those of the codes that are wanted, that no line of a
 * suppressions file names, and that an earlier report did not have.
 *
 * `ddpcheck report` and `ddpcheck run` take the same options for it. Nothing is left out of the
 * trace: a choice only says what is shown and counted. */
#ifndef DDPCHECK_CHOICE_H
#define DDPCHECK_CHOICE_H

#include <stdbool.h>

#include "cmd/options/options.h"
#include "cmd/options/suppression.h"

/* What the options say; strings are the caller's. */
struct choice_options {
    const char *only, *disable; /* "DC102,DC2xx,hang"; NULL: all, none */
    const char *suppressions;   /* file; NULL: DDPCHECK_SUPPRESSIONS, else none */
    const char *baseline;       /* file: what `ddpcheck report --json` printed; NULL none */
    bool certain;               /* no possible ones */
};

/* For the option table of a command; its --help shows them if `shown`. */
#define CHOICE_ENTRY(shown, name, kind, argument, help, value) \
    {                                                          \
        name, 0, kind, argument, (shown) ? help : NULL, value  \
    }
#define CHOICE_ENTRIES(choice, shown)                                                          \
    CHOICE_ENTRY(shown, "only", OPTION_TEXT, "CODES", "only these findings: DC201,DC1xx,hang", \
                 &(choice).only),                                                              \
        CHOICE_ENTRY(shown, "disable", OPTION_TEXT, "CODES", "all but these findings",         \
                     &(choice).disable),                                                       \
        CHOICE_ENTRY(shown, "certain", OPTION_FLAG, NULL, "report only certain findings",      \
                     &(choice).certain),                                                       \
        CHOICE_ENTRY(shown, "suppressions", OPTION_TEXT, "FILE",                               \
                     "suppressions file (default: $DDPCHECK_SUPPRESSIONS)",                    \
                     &(choice).suppressions),                                                  \
        CHOICE_ENTRY(shown, "baseline", OPTION_TEXT, "FILE",                                   \
                     "report only findings not in FILE (output of 'report --json')",           \
                     &(choice).baseline)

struct known_finding;

struct choice {
    struct choice_options options;
    struct suppressions suppressions;
    struct known_finding *known; /* findings of the baseline, by fingerprint */
    int suppressed, known_again; /* findings */
};

enum verdict { REPORTED, NOT_WANTED, SUPPRESSED, KNOWN };

/* Checks the options and reads the files. Returns 0 (choice_free it), or -1 with err. */
int choice_load(struct choice *choice, const struct choice_options *options, struct error *err);
void choice_free(struct choice *choice);

/* What becomes of a finding. Its stacks are looked up in `trace` (NULL: lines that name functions
 * don't match). */
enum verdict choice_judge(const struct choice *choice, const struct finding *finding,
                          struct trace *trace);
/* The same, and counts it: call it once for each finding. */
enum verdict choice_count(struct choice *choice, const struct finding *finding,
                          struct trace *trace);

/* Findings of the baseline that choice_count has not met: they are gone. */
int choice_gone(const struct choice *choice);

/* Adds the options as words of a command line ("--only", "DC201", ...) to argv, which has room for
 * CHOICE_WORDS_MAX more. Returns how many. */
enum { CHOICE_WORDS_MAX = 9 };
int choice_words(const struct choice_options *options, const char **argv);

#endif
