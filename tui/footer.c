/* footer.c: lays out the keys of the views in the last line. */
#include "tui/footer.h"

#include <string.h>

#include "tui/view.h"

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
