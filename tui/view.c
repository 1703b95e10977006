/* view.c: the table of views, made from views.def, and the marks that they use. */
#include "tui/view.h"

#include <string.h>
#include <strings.h>

const struct view *const views[VIEWS] = {
#define VIEW(NAME, name) [VIEW_##NAME] = &view_##name,
#define INNER_VIEW       VIEW
#include "tui/views.def"
#undef VIEW
#undef INNER_VIEW
};

int view_find(const char *name)
{
    for (int i = 0; i < VIEWS_NUMBERED; i++)
        if (!strcasecmp(views[i]->name, name))
            return i;
    return -1;
}

const struct signs *signs_of(const struct query *query)
{
    static const struct signs wide = {
        .done = "·",
        .started = "▶",
        .issued = "○",
        .behind = "◔",
        .missing = "!",
        .exited = "✗",
        .unseen = "?",
        .same = "=",
        .differs = "≠",
        .bar = "█",
        .dot = "·",
    };
    static const struct signs plain = {
        .done = ".",
        .started = ">",
        .issued = "o",
        .behind = "b",
        .missing = "!",
        .exited = "x",
        .unseen = "?",
        .same = "=",
        .differs = "#",
        .bar = "#",
        .dot = ".",
    };
    return query->ascii ? &plain : &wide;
}
