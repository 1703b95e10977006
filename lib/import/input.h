/* input.h: a file as readers see it (import.h), opened and closed by the import. */
#ifndef DDPCHECK_INPUT_H
#define DDPCHECK_INPUT_H

#include "lib/import/import.h"

/* Opens the file, before its first member. `path` must last. Returns NULL with err. */
struct import_input *input_open(const char *path, struct error *err);
/* Goes to the next member of an archive, or into a file that is none, and looks at its beginning.
 * Returns 1; 0 where there is none; -1 with err, after which there is none. */
int input_next(struct import_input *input, struct error *err);
/* Members of an archive that are no files that could be read: links, devices. */
uint64_t input_left_out(const struct import_input *input);
void input_close(struct import_input *input);
/* Calls `read` whenever more of the file was read, with its bytes on disk so far. */
void input_watch(struct import_input *input, void (*read)(void *context, uint64_t taken),
                 void *context);
/* Whether what is in hand is a member of an archive, not the file that was opened. */
bool input_is_member(const struct import_input *input);
/* What sniff is asked; valid until input_next. */
void input_head(const struct import_input *input, struct import_head *head);

#endif
