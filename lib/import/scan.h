/* scan.h: finds a template in a line of text and takes its fields out of it.
 *
 * A template is literal text with fields in braces:
 *
 *     {i:rank}    a number, perhaps with a minus; blanks before it are passed over
 *     {w:call}    a word: up to a blank, comma, semicolon, quote or bracket; a colon at its end is
 *                 its own only if the template fits then
 *     {r:what}    all up to what follows in the template; at its end, all of the line
 *     {?...}      what may be missing; it can hold fields
 *
 * "process rank {i:rank}{? with PID {i:pid}} on node {w:host}". Names may be empty. */
#ifndef DDPCHECK_IMPORT_SCAN_H
#define DDPCHECK_IMPORT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCAN_FIELDS_MAX = 8 };

struct scanned {
    const char *begin, *end; /* of the whole, in the text */
    struct scanned_field {
        const char *name, *text; /* name: in the template; neither is ended by NUL */
        size_t name_bytes, bytes;
        int64_t number; /* of {i:...} */
    } field[SCAN_FIELDS_MAX];
    int fields;
};

/* The first place in `text` where the template fits. False: there is none, and *scanned is not set.
 */
bool scan(const char *text, const char *template, struct scanned *scanned);
/* Where the literal is in the text, as strstr() says it. */
const char *scan_find(const char *text, const char *literal);

/* Looks at a line once, so that both know which of many texts can't be in it, until scan_line_end()
 * and while it does not change: for texts inside of it. One line at a time in a thread. */
void scan_line_begin(const char *text, size_t bytes);
void scan_line_end(void);
/* `otherwise` if there is no such number. */
int64_t scanned_number(const struct scanned *scanned, const char *name, int64_t otherwise);

#endif
