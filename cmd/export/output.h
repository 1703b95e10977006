/* output.h: where an export goes: standard output, or a file that is there whole or not at all. */
#ifndef DDPCHECK_EXPORT_OUTPUT_H
#define DDPCHECK_EXPORT_OUTPUT_H

#include <stdio.h>

#include "lib/base/error.h"

struct output {
    FILE *file;       /* to write to */
    const char *path; /* the caller's; NULL: standard output */
    char *temporary;  /* beside `path`, takes its place in the end; NULL: written in place */
};

/* Opens for writing; NULL and "-" are standard output. What is no regular file (a pipe, /dev/null)
 * is written in place, any other through a temporary file beside it. Returns 0, or -1 with err. */
int output_open(struct output *output, const char *path, struct error *err);

/* Writes out what is buffered and puts the file in its place. Returns 0, or -1 with err: then an
 * older file at the path is still what it was. */
int output_commit(struct output *output, struct error *err);

/* Gives up: nothing is left of what was written to a temporary file. */
void output_abandon(struct output *output);

#endif
