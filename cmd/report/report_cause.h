/* report_cause.h: what is added to a finding: which usual cause its ranks' ends and stacks show,
 * and what holds in the job's version of NCCL. */
#ifndef DDPCHECK_REPORT_CAUSE_H
#define DDPCHECK_REPORT_CAUSE_H

struct cause;
struct finding;
struct report;
struct version_fact;

/* NULL: what was seen fits none. */
const struct cause *report_cause(const struct report *report, const struct finding *finding);
/* What holds in the version of NCCL of the first side whose process is known; NULL: nothing more.
 */
const struct version_fact *report_version_fact(const struct report *report,
                                               const struct finding *finding, int *nccl_version);

#endif
