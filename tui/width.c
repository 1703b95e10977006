/* width.c: measures and wraps text by its width on the terminal. */
#include "tui/width.h"

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
