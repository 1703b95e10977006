/* view.c: the table of views, made from views.def, the marks that they use, and their keys in
 * the last line. */
#include "tui/view.h"

const struct view *const views[VIEWS] = {
#define VIEW(NAME, name) [VIEW_##NAME] = &view_##name,
#define INNER_VIEW       VIEW
#include "tui/views.def"
#undef VIEW
#undef INNER_VIEW
};

static const char names[] = ""
#define VIEW(NAME, name) "|" #name
#define INNER_VIEW(NAME, name)
#include "tui/views.def"
#undef VIEW
#undef INNER_VIEW
    ;
const char *const view_choices = names + 1;

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

/* Title, three lines of the finding, a blank one, the table's titles, keys. */
enum { LINES_AROUND_TABLE = 7 };

int query_room(const struct query *query)
{
    return query->height > LINES_AROUND_TABLE ? query->height - LINES_AROUND_TABLE : 1;
}

/* --- the last line --- */

enum { LETTERS_MOST = 16, LETTERS_LEAST = 2, GAP = 1 };

static const char *const rests[] = {"? help q quit", "? q quit", "? q"};
enum { RESTS = sizeof rests / sizeof *rests };

/* "1 Now", or "1Now" where letters are few. */
static int columns_of(int view, int letters)
{
    int name = (int)strlen(views[view]->name), digit = letters == LETTERS_MOST ? 2 : 1;
    return digit + (name < letters ? name : letters);
}

static int footer_columns(int letters)
{
    int columns = 0;
    for (int i = 0; i < VIEWS_NUMBERED; i++)
        columns += columns_of(i, letters) + GAP;
    return columns;
}

const char *footer_rest(int width)
{
    int rest = 0;
    while (rest < RESTS - 1 && footer_columns(LETTERS_MOST) + (int)strlen(rests[rest]) > width)
        rest++;
    return rests[rest];
}

int footer_letters(int width)
{
    int rest = (int)strlen(footer_rest(width)), letters = LETTERS_MOST;
    while (letters > LETTERS_LEAST && footer_columns(letters) + rest > width)
        letters--;
    return letters;
}

void footer_place(int view, int letters, int *column, int *columns)
{
    *column = 0;
    for (int i = 0; i < view; i++)
        *column += columns_of(i, letters) + GAP;
    *columns = columns_of(view, letters);
}
