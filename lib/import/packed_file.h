/* packed_file.h: the bytes of a file that may be packed by gzip or zstd, whatever its name. */
#ifndef DDPCHECK_PACKED_FILE_H
#define DDPCHECK_PACKED_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

struct packed_file;

/* Opens `path`; its first bytes say how it is packed. Returns 0, or -1 with err, which names the
 * file. */
int packed_open(struct packed_file **file, const char *path, struct error *err);
/* The same of what `source` gives: up to `bytes` bytes, 0 at the end, -1 with err. Errors name no
 * file. */
typedef int64_t packed_source(void *context, void *buffer, size_t bytes, struct error *err);
int packed_open_source(struct packed_file **file, packed_source *source, void *context,
                       struct error *err);
void packed_close(struct packed_file *file); /* NULL is allowed */

/* Up to `bytes` unpacked bytes: how many, 0 at the end, -1 with err (which does not name the file:
 * damaged, cut, can't be read). Has the form of json_read (json_stream.h). */
int64_t packed_read(void *file, void *buffer, size_t bytes, struct error *err);

uint64_t packed_taken(
    const struct packed_file *file); /* bytes of the file read so far, as they lie on disk */

#endif
