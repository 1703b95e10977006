/* cause.h: which of a check's usual causes fits what was seen of a finding. */
#ifndef DDPCHECK_CAUSE_H
#define DDPCHECK_CAUSE_H

#include "analyzer/check.h"

/* The first of the check's causes whose sign is seen, or NULL. frames[i] are the frames of side i,
 * "function file" line by line; NULL where none is known. */
const struct cause *cause_seen(const struct check *check, const struct finding *finding,
                               const char *const frames[FINDING_SIDES_MAX]);

#endif
