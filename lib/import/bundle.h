/* bundle.h: the files inside of a file: of a zip or tar archive, or the one that xz or bzip2
 * has packed. Any other file is one that contains itself. Members that gzip or zstd has packed are
 * unpacked.
 *
 * An archive comes from strangers. Nothing of it is written to the disk, and its names are only
 * shown; links and devices in it are left out; how many members it may have and how much it may
 * unpack to is limited (bundle.c). */
#ifndef DDPCHECK_BUNDLE_H
#define DDPCHECK_BUNDLE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

struct bundle;

struct bundle_member {
    const char *name; /* of a member, printable, valid until the next one; NULL: the file itself */
    uint64_t modified_ns; /* since 1970; 0 not known */
};

/* Opens `path`, before its first member. Returns 0, or -1 with err, which names the file. */
int bundle_open(struct bundle **file, const char *path, struct error *err);
void bundle_close(struct bundle *file); /* NULL is allowed */
/* Goes to the next member. Returns 1; 0 where there is none; or -1 with err (which does not name
 * the file): the archive is damaged, or goes beyond a limit. */
int bundle_next(struct bundle *file, struct bundle_member *member, struct error *err);
/* Up to `bytes` bytes of the member, 0 at its end, -1 with err. Has the form of packed_read. */
int64_t bundle_read(void *file, void *buffer, size_t bytes, struct error *err);
uint64_t bundle_taken(const struct bundle *file); /* of the file, as it lies on disk */
/* How many links and devices of the archive were left out. */
uint64_t bundle_left_out(const struct bundle *file);

#endif
