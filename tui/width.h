/* width.h: how wide text is on a terminal, in the locale's encoding. */
#ifndef DDPCHECK_TUI_WIDTH_H
#define DDPCHECK_TUI_WIDTH_H

#include <stddef.h>

/* Columns that the text takes; bytes that are no character count one each. */
int width_of(const char *text);
/* Bytes of the longest beginning that takes at most `columns`. */
size_t width_fit(const char *text, int columns);
/* Bytes of the next line of the text when wrapped at blanks to `columns` >= 1; *next is where the
 * line after it begins. A '\n' ends a line. */
size_t width_wrap(const char *text, int columns, const char **next);
/* A copy in which what could steer the terminal, or is no character, is '?'. The caller's; NULL
 * when memory is short. */
char *width_clean(const char *text);

#endif
