/* report_culprit.h: where the rank is that the others of a hang wait for, by all that is known. */
#ifndef DDPCHECK_REPORT_CULPRIT_H
#define DDPCHECK_REPORT_CULPRIT_H

#include "cmd/report/report_model.h"
#include "lib/finding/finding_culprit.h"

/* The frames of where it stands: of a rank that ended those of its last call, else where it is now,
 * also as captured when the job hung. Returns its side, as finding_culprit; -1: none. */
int culprit_frames(const struct report *report, const struct finding *finding,
                   struct shown_frames *frames);
/* finding_culprit_words of it; "" if there is none. Returns text. */
char *culprit_text(const struct report *report, const struct finding *finding,
                   char text[CULPRIT_BYTES]);

#endif
