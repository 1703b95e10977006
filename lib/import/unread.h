/* unread.h: files that no reader takes: what they are, and what to do instead. Of those that are
 * found in directories and archives, one message says so for all of a kind. */
#ifndef DDPCHECK_IMPORT_UNREAD_H
#define DDPCHECK_IMPORT_UNREAD_H

#include "lib/import/import.h"

struct unread_kind;

/* What the file is, to follow "it is": "empty". Lasts for ever. */
const char *unread_what(const struct import_input *input);
/* Remembers a file of that kind, for unread_print. Returns 0, or -1 when memory is short. */
int unread_add(struct import *import, const char *what, const char *path);
/* Prints a message for each kind, and forgets them. */
void unread_print(struct import *import);

#endif
