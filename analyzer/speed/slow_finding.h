/* slow_finding.h: findings about what slows a job down. */
#ifndef DDPCHECK_SPEED_SLOW_FINDING_H
#define DDPCHECK_SPEED_SLOW_FINDING_H

#include "analyzer/findings.h"
#include "analyzer/speed/slowdown.h"

/* State of a check, with the job: what it has reported, so that it is updated, not repeated. */
struct slow_reported {
    struct slow_place {
        uint64_t comm;
        uint32_t rank, finding;
        uint64_t judged;      /* when it was seen last, as speed->judged */
        uint64_t first, last; /* iterations that it was seen in then */
        uint64_t since;       /* from which on; it may be later than the first */
        uint64_t withdrawn;   /* the iterations it then rested on; 0: it is reported */
    } * is;
    uint32_t count, capacity;
};
/* The state_end of each check that keeps a struct slow_reported. */
void slow_reported_free(void *state);

/* Places in struct values that slowdown_report sets; checks set the others. headlines.def has these
 * numbers. */
enum slow_value { SLOW_VALUE_SINCE, SLOW_VALUE_UNTIL, SLOW_VALUE_OWN };
enum slow_flag { SLOW_IS_ALL, SLOW_IS_THROTTLED, SLOW_FLAG_OWN };
enum slow_name { SLOW_HOST_NAME, SLOW_GAP_FROM, SLOW_GAP_TO, SLOW_KERNEL, SLOW_NAME_OWN = 6 };
enum slow_amount {
    SLOW_LOST,
    SLOW_LENGTH,
    SLOW_SHARE,
    SLOW_OFTEN,
    SLOW_STARVED,
    SLOW_KERNEL_RATIO,
    SLOW_AMOUNT_OWN = 8
};
/* Reports it, or brings what was reported of the same ranks up to date; as a note if it rests on
 * coarse times and costs little. What was withdrawn is reported again only at the end of the job,
 * or if it rests on twice as many iterations, and on as many as are never withdrawn. `values`: the
 * check's own; NULL: it has none. */
void slowdown_report(struct analyzer *analyzer, const struct check *check,
                     const struct slowdown *slowdown, enum did did, enum headline headline,
                     enum advice advice, const struct values *values);
/* Withdraws what was reported after few iterations, where as many more do not show it, or the end
 * of the job does not; and what another check says of the same ranks and most of the same
 * iterations now. */
void slowdown_withdraw(struct analyzer *analyzer, const struct check *check,
                       const struct slowdown *judged);

#endif
