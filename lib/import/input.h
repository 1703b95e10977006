/* input.h: a file as readers see it (import.h), opened and closed by the import. */
#ifndef DDPCHECK_INPUT_H
#define DDPCHECK_INPUT_H

#include "lib/import/import.h"

/* Opens the file and looks at its beginning. `path` must last. Returns NULL with err. */
struct import_input *input_open(const char *path, struct error *err);
void input_close(struct import_input *input);
/* Calls `read` whenever more of the file was read, with its bytes on disk so far. */
void input_watch(struct import_input *input, void (*read)(void *context, uint64_t taken),
                 void *context);
/* What sniff is asked; valid until the first read. */
void input_head(const struct import_input *input, struct import_head *head);

#endif
