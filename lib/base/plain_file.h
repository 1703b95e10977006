/* plain_file.h: opens a file whose name somebody else has chosen. */
#ifndef DDPCHECK_PLAIN_FILE_H
#define DDPCHECK_PLAIN_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* Opens a plain file for reading; never a device, a pipe or a socket. A link at the end of `path`
 * is followed if `follows_links`, or if it leads to a file of the same directory, as the names of
 * shared libraries do. Returns a descriptor, or -1 with errno. */
int plain_file_open(const char *path, bool follows_links);

/* The same as a stream for reading text; links are followed. Returns NULL with errno; the caller
 * closes it. */
FILE *plain_file_text(const char *path);

#endif
