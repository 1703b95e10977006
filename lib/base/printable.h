/* printable.h: what of a job's text may be printed: nothing that steers a terminal or disguises
 * what stands beside it. */
#ifndef DDPCHECK_PRINTABLE_H
#define DDPCHECK_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of the UTF-8 character at `text` (RFC 3629: no surrogates, nothing overlong), 0 if it is
 * none. */
size_t utf8_length(const char *text);

/* Whether the character at the beginning of `text` (not its end) may be printed as it is: no
 * control (C0, DEL, C1), no bidirectional control, no separator of lines, and UTF-8. *bytes: how
 * long it is; 1 where it is no character. */
bool printable_next(const char *text, size_t *bytes);

/* Writes the text with a '?' for each character that may not be printed. */
void printable_put(const char *text, size_t bytes, FILE *out);

/* The same in place. */
void printable_clean(char *text);
/* The same of a text that may have several lines: '\n' and '\t' stay. */
void printable_clean_lines(char *text);

#endif
