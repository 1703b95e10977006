/* finding_details.c: the lines below an error on a terminal. */
#include "lib/finding/finding_details.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/finding/finding_culprit.h"
#include "lib/finding/finding_fix.h"
#include "lib/finding/finding_site.h"

enum { LOCATION_BYTES = 256, RANKS_BYTES = 128, SIDES_SHOWN = 4 };

/* Of a rank at the finding's own line nothing, if the finding has said what it waits for. */
static void add_detail(struct text *line, struct trace *trace, const struct finding *finding,
                       int index, const char *finding_location)
{
    const struct finding_side *side = &finding->side[index];
    char location[LOCATION_BYTES] = "", ranks[RANKS_BYTES];
    int count = rankset_count(&side->ranks);
    rankset_words(&side->ranks, ranks, sizeof ranks);
    if (trace)
        finding_side_location(trace, finding, index, FINDING_LOCATION_WIDTH, location,
                              sizeof location);
    bool is_new = strcmp(location, finding_location) != 0;
    if (!count || (!is_new && (!*side->where || did_step(side->now.did))))
        return;
    if (*location)
        text_add(line, "%s at %s%s%s", ranks, location, *side->where ? ", " : "", side->where);
    else if (*side->where)
        text_add(line, "%s: %s", ranks, side->where);
}

/* Of who the others wait for, on one line, who and where that is. */
static void add_culprit(struct text *line, struct trace *trace, const struct finding *finding,
                        int index)
{
    const struct finding_side *side = &finding->side[index];
    enum side_stack which = did_end(side->act.did) ? SIDE_STACK_ACT : SIDE_STACK_NOW;
    struct shown_frames where;
    char words[CULPRIT_BYTES];
    finding_side_frames(trace, finding, index, which, &where);
    if (where.shown < 0 && which == SIDE_STACK_ACT)
        finding_side_frames(trace, finding, index, SIDE_STACK_NOW, &where);
    finding_culprit_last_line(trace, finding, &where);
    text_add(line, "%s", finding_culprit_words(trace, finding, &where, 0, words));
}

static void show_line(struct text *text, void (*show)(void *context, const char *line),
                      void *context)
{
    char *line = text_take(text);
    if (line && *line)
        show(context, line);
    free(line);
}

void finding_details(struct trace *trace, const struct finding *finding,
                     void (*show)(void *context, const char *line), void *context)
{
    char location[LOCATION_BYTES] = "";
    struct text fix = {0};
    if (trace)
        finding_location(trace, finding, FINDING_LOCATION_WIDTH, location, sizeof location);
    int culprit = trace ? finding_culprit(finding) : -1;
    for (int i = 0; i < finding->sides && i < SIDES_SHOWN; i++) {
        struct text side = {0};
        if (i == culprit)
            add_culprit(&side, trace, finding, i);
        else if (i)
            add_detail(&side, trace, finding, i, location);
        show_line(&side, show, context);
    }
    if (*finding->todo)
        text_add(&fix, "fix: %s", finding_fix(trace, finding));
    show_line(&fix, show, context);
}
