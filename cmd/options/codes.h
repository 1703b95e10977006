/* codes.h: the codes of findings as people type them. */
#ifndef DDPCHECK_CODES_H
#define DDPCHECK_CODES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/finding/code.h"

struct check;

/* Categories are words for groups of codes: mismatch, hang, hazard, device, training, performance,
 * trace. */

/* True if `list`, "DC102,dc2xx,hang", names `code`; x stands for any digit. NULL names all. */
bool codes_have(const char *list, enum code code);

/* Looks for an item of `list` that names no check of this build and no category. Returns true if
 * there is one, copied to item. */
bool codes_unknown(const char *list, char *item, size_t bytes);

/* The check that "DC102", "dc102" or "102" means, or NULL. */
const struct check *codes_find(const char *text);
/* The code most like `text`, or NULL if none is. */
const char *codes_nearest(const char *text);

#endif
