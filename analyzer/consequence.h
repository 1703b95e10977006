/* consequence.h: which finding is a consequence of another: one rule, for the findings of one
 * analysis (findings.c) and for those of several (cmd/report/report_merge.c). */
#ifndef DDPCHECK_CONSEQUENCE_H
#define DDPCHECK_CONSEQUENCE_H

#include "analyzer/check.h"

/* A finding as the rule sees it. It owns nothing. */
struct symptom {
    const struct check *check;
    const struct finding *finding;
    uint64_t held_ns; /* of a hang: since when the ranks that wait did nothing else (realtime); 0
                         not known */
};

/* Whether `symptom` is a consequence of `cause`, if they concern the same communicator or ranks.
 *
 * What a rank does while a hang already holds it is a consequence of the hang, and never its cause:
 * a watchdog, a destructor, an atexit handler or an error path that cleans up. Apart from that a
 * finding has the consequences that its check lists (check.h). A possible hang is no cause of a
 * certain one. */
bool is_consequence(const struct symptom *symptom, const struct symptom *cause);

#endif
