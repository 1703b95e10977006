/* width.c: measures and wraps text by its width on the terminal. */
#include "tui/width.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "lib/base/printable.h"

/* Bytes and columns of the character at `text`, which is not at its end. */
static size_t character(const char *text, int *columns)
{
    mbstate_t state = {0};
    wchar_t wide;
    size_t bytes = mbrtowc(&wide, text, strlen(text), &state);
    *columns = 1;
    if (bytes == 0 || bytes > strlen(text))
        return 1;
    int width = wcwidth(wide);
    *columns = width < 0 ? 1 : width;
    return bytes;
}

int width_of(const char *text)
{
    int all = 0, columns;
    while (*text) {
        text += character(text, &columns);
        all += columns;
    }
    return all;
}

size_t width_fit(const char *text, int limit)
{
    size_t all = 0;
    int used = 0, columns;
    while (text[all]) {
        size_t bytes = character(text + all, &columns);
        if (used + columns > limit)
            break;
        used += columns;
        all += bytes;
    }
    return all;
}

/* A number goes with the word before it ("rank 3", "comm x #25"), "(4" with what it counts, and a
 * unit with its number. */
static bool joins_words(const char *text, size_t space)
{
    static const char *const units[] = {"s ", "s\n", "ms ", "min ", "h ", "s,", "s;", "s)"};
    const char *word = text + space + 1;
    size_t begin = space;
    while (begin > 0 && text[begin - 1] != ' ')
        begin--;
    if (isdigit((unsigned char)*word) || *word == '#')
        return true;
    if (text[begin] == '(' && isdigit((unsigned char)text[begin + 1]))
        return true;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (isdigit((unsigned char)text[begin]) && !strncmp(word, units[i], strlen(units[i])))
            return true;
    return false;
}

/* Where the line ends before `end`, a space: there, or at one that parts no words that belong
 * together, if that leaves half of the line. */
static size_t wrap_at(const char *text, size_t end)
{
    size_t best = end;
    while (best > end / 2 && (text[best] != ' ' || joins_words(text, best)))
        best--;
    return best > end / 2 ? best : end;
}

size_t width_wrap(const char *text, int columns, const char **next)
{
    size_t fits = width_fit(text, columns), newline = strcspn(text, "\n");
    if (newline <= fits) {
        *next = text + newline + (text[newline] == '\n');
        return newline;
    }
    size_t end = fits;
    while (end > 0 && text[end] != ' ')
        end--;
    if (end == 0) /* a word longer than the line */
        end = fits ? fits : 1;
    else
        end = wrap_at(text, end);
    *next = text + end;
    while (**next == ' ')
        (*next)++;
    return end;
}

char *width_clean(const char *text)
{
    char *copy = strdup(text);
    for (char *c = copy; copy && *c;) {
        mbstate_t state = {0};
        wchar_t wide;
        size_t length, bytes = mbrtowc(&wide, c, strlen(c), &state);
        if (!printable_next(c, &length) || bytes == 0 || bytes > strlen(c) ||
            (unsigned char)*c < 0x20 || *c == 0x7f || wcwidth(wide) < 0) {
            bytes = 1;
            *c = '?';
        }
        c += bytes;
    }
    return copy;
}
