/* not_checked.h: which checks could not be made, for which ranks, since the source of their records
 * does not say what these need (lib/trace/lacks.h). */
#ifndef DDPCHECK_NOT_CHECKED_H
#define DDPCHECK_NOT_CHECKED_H

#include <stddef.h>

#include "lib/base/rankset.h"
#include "lib/base/text.h"
#include "lib/trace/lacks.h"
#include "lib/trace/trace.h"

struct not_checked {
    const struct lack_text *lack;
    char title[64];       /* "Flight Recorder" */
    struct rankset ranks; /* those that are known */
    int processes;
    bool all;     /* of the trace's processes */
    bool is_text; /* a log, a stack: it says little of everything */
};

/* One entry for each source and each thing that it lacks and a check needs. *list is the caller's
 * (not_checked_free). Returns how many, or -1 when memory is short. A trace of the shim has none.
 */
int not_checked_find(struct trace *trace, struct not_checked **list);
/* Adds that the hosts were analysed by themselves. Returns the new count, or -1 when memory is
 * short. */
int not_checked_add_by_host(struct not_checked **list, int count);
/* "Flight Recorder does not say buffer addresses (ranks 0-3)". Returns text. */
char *not_checked_text(const struct not_checked *entry, char *text, size_t bytes);
/* Adds the codes of `count` entries as one list: "DC102-DC105, DC112". */
void not_checked_codes(struct text *text, const struct not_checked *list, int count);
/* How many entries from the first on are of the same source and ranks; of a log, of any ranks. */
int not_checked_alike(const struct not_checked *list, int count);
/* The first entry for which a finding of this code can't be judged, or NULL. */
const struct not_checked *not_checked_code(const struct not_checked *list, int count,
                                           const char *code);
void not_checked_free(struct not_checked *list, int count);

#endif
