/* report_hub_now.h: what the hub of a job has now. */
#ifndef DDPCHECK_REPORT_HUB_NOW_H
#define DDPCHECK_REPORT_HUB_NOW_H

/* The open errors and warnings of the hub at this address (without its token), a line for each, as
 * a collector stores what its hub reports ("hub_news" in docs/schema.md). NULL: the job's settings
 * (DDPCHECK_HUB) are of no hub or of another, it does not answer within a second, or memory is
 * short. The caller frees it. */
char *hub_lines_now(const char *place);

#endif
