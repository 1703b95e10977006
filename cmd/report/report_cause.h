/* report_cause.h: what is added to a finding: which usual cause its ranks' ends and stacks show,
 * and what holds in the job's versions of NCCL and PyTorch. */
#ifndef DDPCHECK_REPORT_CAUSE_H
#define DDPCHECK_REPORT_CAUSE_H

#include "analyzer/check.h"
#include "analyzer/version_facts.h"

struct finding;
struct report;

/* One of the check's usual causes; NULL: what was seen fits none. */
const struct cause *report_cause(const struct report *report, const struct finding *finding);
/* What holds in the versions of the first side whose process is known, and these; NULL: nothing
 * more. */
const struct version_fact *report_version_fact(const struct report *report,
                                               const struct finding *finding,
                                               int versions[LIBRARIES]);

#endif
