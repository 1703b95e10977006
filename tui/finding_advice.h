/* finding_advice.h: what a finding's view adds to what happened: what holds in the job's version of
 * NCCL, and the usual cause that fits. */
#ifndef DDPCHECK_TUI_FINDING_ADVICE_H
#define DDPCHECK_TUI_FINDING_ADVICE_H

struct rows;
struct source;
struct finding;

/* Adds the paragraphs; none where nothing is known. */
void finding_advice(struct source *source, const struct finding *finding, int width,
                    struct rows *rows);

#endif
