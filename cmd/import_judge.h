/* import_judge.h: analyses a trace while it is imported, and stores what was found as the collector
 * does, so that `tui` and SQL find it there. */
#ifndef DDPCHECK_IMPORT_JUDGE_H
#define DDPCHECK_IMPORT_JUDGE_H

#include "lib/import/import.h"

struct import_verdict {
    int errors, warnings; /* that are open, once the import is over */
};

/* NULL with err. `verdict` must last until it is freed. */
const struct import_judge *import_judge_new(struct import_verdict *verdict, struct error *err);
void import_judge_free(const struct import_judge *judge); /* NULL is allowed */

#endif
