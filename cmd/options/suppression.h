/* suppression.h: a file of lines; each names findings that are not to be reported.
 *
 *     # the vendor's library clips in place, and waits elsewhere
 *     DC301:file=vendor/clip.c;call=ncclAllReduce*
 *     hang:phase=warmup
 *     *:fingerprint=2d64d5c56ba60b82
 *
 * Before the colon: a code ("DC301", "dc3xx"), a category (codes.h) or * for all. After it: one or
 * more KEY=GLOB, separated by ';', which must all hold on one side of the finding. Keys: func,
 * file, module (of any frame of the program in the side's stacks), call (what the side called),
 * phase, fingerprint. Globs are those of the shell (fnmatch(3)), where * also matches '/'; a file
 * is compared with the whole path and with its ends that begin behind a '/'. Lines that begin with
 * # and empty lines say nothing. The form is that of the sanitizers' suppression files. */
#ifndef DDPCHECK_SUPPRESSION_H
#define DDPCHECK_SUPPRESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/finding/finding.h"
#include "lib/base/error.h"
#include "lib/trace/trace.h"

enum { SUPPRESSION_CONDITIONS_MAX = 8 };

struct suppression_condition {
    int key;
    const char *glob;
};

struct suppression {
    char *text; /* the line; conditions point into `parts` */
    char *parts;
    int line;
    const char *what; /* before the colon */
    struct suppression_condition condition[SUPPRESSION_CONDITIONS_MAX];
    int conditions;
    uint64_t used; /* findings that it matched */
};

struct suppressions {
    char *path;
    struct suppression *entry;
    int count;
};

/* Reads the file. Returns 0 (suppressions_free it), or -1 with err, which names file and line. */
int suppressions_load(struct suppressions *suppressions, const char *path, struct error *err);
void suppressions_free(struct suppressions *suppressions);

/* The first line that matches the finding, whose stacks are looked up in `trace`; NULL if none
 * does. Does not count. */
struct suppression *suppressions_find(const struct suppressions *suppressions,
                                      const struct finding *finding, struct trace *trace);

/* Writes a line that matches the finding: by the function that made the call where that is known,
 * else by its fingerprint; with the sentence of what happened before it, as a comment. */
void suppression_print(const struct finding *finding, struct trace *trace, FILE *out);

#endif
