/* finding_details.c: the lines below an error on a terminal. */
#include "lib/finding/finding_details.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/finding/finding_fix.h"
#include "lib/finding/finding_site.h"

enum { LOCATION_BYTES = 256, RANKS_BYTES = 128, SIDES_SHOWN = 4 };

/* Of a rank at the finding's own line nothing, if the finding has said what it waits for. */
static void add_detail(struct text *line, struct trace *trace, const struct finding_side *side,
                       const char *finding_location)
{
    char location[LOCATION_BYTES] = "", ranks[RANKS_BYTES];
    int count = rankset_count(&side->ranks);
    rankset_text(&side->ranks, ranks, sizeof ranks);
    if (trace)
        finding_side_location(trace, side, FINDING_LOCATION_WIDTH, location, sizeof location);
    bool is_new = strcmp(location, finding_location) != 0;
    if (!count || (!is_new && (!*side->where || did_step(side->now.did))))
        return;
    const char *noun = count == 1 ? "rank" : "ranks";
    if (*location)
        text_add(line, "%s %s at %s%s%s", noun, ranks, location, *side->where ? ", " : "",
                 side->where);
    else if (*side->where)
        text_add(line, "%s %s: %s", noun, ranks, side->where);
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
    for (int i = 1; i < finding->sides && i < SIDES_SHOWN; i++) {
        struct text side = {0};
        add_detail(&side, trace, &finding->side[i], location);
        show_line(&side, show, context);
    }
    if (*finding->todo)
        text_add(&fix, "fix: %s", finding_fix(trace, finding));
    show_line(&fix, show, context);
}
