/* place.h: where in the program's sources a finding is, as readers of the export have them. */
#ifndef DDPCHECK_EXPORT_PLACE_H
#define DDPCHECK_EXPORT_PLACE_H

#include <limits.h>
#include <stdbool.h>

#include "cmd/export/export.h"
#include "lib/trace/site.h"

struct export_place {
    char path[PATH_MAX]; /* relative to the sources where they lie below the working directory or
                            --src-prefix said so */
    int line;            /* from 1 */
    char function[1024]; /* of C++ mangled; "" not known */
    bool exact; /* false: the program's script or executable, because no call's place is known */
};

/* Checks what --src-prefix says. Returns 0, or -1 with err. */
int place_check_prefix(const char *src_prefix, struct error *err);

/* The path of a source as --src-prefix maps it, else below the working directory. Returns path. */
char *place_path(const struct export *export, const char *file, char path[PATH_MAX]);

/* The line of the side's call that people look at (finding_side_frames). False: none is known. */
bool place_of_side(const struct export *export, const struct finding *finding, int side,
                   struct export_place *place);

/* Of the rank that the others of a hang wait for; else of the first side that has one; else where
 * the program begins, so that every finding has a place. */
void place_of_finding(const struct export *export, const struct finding *finding,
                      struct export_place *place);

#endif
