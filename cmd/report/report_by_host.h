/* report_by_host.h: a report over the databases of many hosts without one stream of all events.
 *
 * Each database is replayed by itself, several at a time, as its host's collector analysed it; what
 * is between hosts is judged by a hub in this process, which asks them for what it would have asked
 * the live job for (hub/stored_job.h). Checks that compare all records of several hosts are left
 * out, and the report says so: by_host_unchecked. */
#ifndef DDPCHECK_REPORT_BY_HOST_H
#define DDPCHECK_REPORT_BY_HOST_H

#include "cmd/report/report_model.h"

/* Whether the trace is analysed so: it has several databases, collectors wrote them, and it was
 * asked for or they are large. */
bool by_host_applies(const struct report *report, enum report_hosts hosts);
/* Fills the report, whose trace and sources are there. Returns 0, or -1 with err. */
int load_by_host(struct report *report, const struct report_options *options,
                 uint64_t hang_after_ns, struct error *err);

/* What is not checked between hosts. */
extern const char by_host_unchecked[], by_host_why[];

#endif
