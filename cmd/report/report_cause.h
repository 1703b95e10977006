/* report_cause.h: which usual cause of a finding its ranks' ends and stacks show. */
#ifndef DDPCHECK_REPORT_CAUSE_H
#define DDPCHECK_REPORT_CAUSE_H

struct cause;
struct finding;
struct report;

/* NULL: what was seen fits none. */
const struct cause *report_cause(const struct report *report, const struct finding *finding);

#endif
