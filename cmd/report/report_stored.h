/* report_stored.h: the findings that collectors made while the job ran. Where records were dropped
 * since (--keep), they can't be found again. */
#ifndef DDPCHECK_REPORT_STORED_H
#define DDPCHECK_REPORT_STORED_H

#include "cmd/report/report_model.h"

/* If records were dropped, fills report->united: what the analyzer found again, without what rests
 * on the records that are gone, and what the collectors had found, worst first. Returns 0, or -1
 * with err. */
int stored_findings_unite(struct report *report, struct error *err);
/* Of the database of a job: gives the analyzer, before the records, what the hub took from hosts.
 * Returns 0, or -1 with err. */
int stored_findings_take(struct report *report, struct error *err);

#endif
