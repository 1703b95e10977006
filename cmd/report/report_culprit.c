/* report_culprit.c: finds where the rank is that the others of a hang wait for. */
#include "cmd/report/report_culprit.h"

#include "cmd/report/report_stacks.h"
#include "lib/finding/finding_site.h"

int culprit_frames(const struct report *report, const struct finding *finding,
                   struct shown_frames *frames)
{
    bool is_address;
    int index = finding_culprit(finding);
    *frames = (struct shown_frames){.shown = -1};
    if (index < 0)
        return index;
    const struct finding_side *side = &finding->side[index];
    if (!did_end(side->act.did)) {
        uint64_t stack = stack_of_where(report, side, &is_address);
        site_shown_frames(report->trace, side->process, stack, is_address, frames);
    }
    if (frames->shown < 0)
        finding_side_frames(report->trace, finding, index, SIDE_STACK_ACT, frames);
    if (frames->shown < 0)
        finding_side_frames(report->trace, finding, index, SIDE_STACK_NOW, frames);
    finding_culprit_last_line(report->trace, finding, frames);
    return index;
}

char *culprit_text(const struct report *report, const struct finding *finding,
                   char text[CULPRIT_BYTES])
{
    struct shown_frames where;
    *text = '\0';
    if (culprit_frames(report, finding, &where) >= 0)
        finding_culprit_words(report->trace, finding, &where,
                              finding_wait_ns(finding, report->end_ns), text);
    return text;
}
