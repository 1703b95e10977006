/* environment.h: what ranks run in, as the cause of what they do: settings that differ between
 * ranks, known bugs of their versions, and settings that cause or hide hangs. */
#ifndef DDPCHECK_ANALYZER_ENVIRONMENT_H
#define DDPCHECK_ANALYZER_ENVIRONMENT_H

#include "analyzer/findings.h"

/* Reports each variable and version that must agree (agreement.def) and does not between these
 * processes (DC801, DC802). */
void environment_compare(struct analyzer *analyzer, const struct rankset *processes);
/* Before a finding is reported: reports what of the environment may be its cause (DC801 to DC803,
 * DC805, advisories.def), and has the finding's advice begin with that. */
void environment_explain(struct analyzer *analyzer, struct draft *draft);

#endif
