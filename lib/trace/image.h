/* image.h: a database's pages at one moment, with what changed since an earlier one.
 *
 * So a database can be followed from another host: what changed is sent, and makes a copy that
 * every reader of traces can open. */
#ifndef DDPCHECK_IMAGE_H
#define DDPCHECK_IMAGE_H

#include <stdint.h>

#include "lib/base/error.h"

enum { IMAGE_PAGE_BYTES = 4096 };

struct image;

/* Opens a database of this page size for reading; nothing is taken yet. Returns 0, or -1 with err.
 */
int image_open(struct image **image, const char *path, struct error *err);
void image_close(struct image *image);

/* Takes the pages as they are now, if anybody has written since; at most pages_max. Returns 0, 1
 * if there are more than that (the pages stay as they were), or -1 with err. */
int image_take(struct image *image, uint32_t pages_max, struct error *err);

/* 0: nothing was taken yet. It grows by 1 with each image that differs from the previous one. */
uint64_t image_version(const struct image *image);
uint32_t image_pages(const struct image *image);
/* Pages have numbers from 1 on. Returns the bytes of the first one from `page` on that changed
 * after `version`, and its number; NULL: none did. */
const unsigned char *image_changed(const struct image *image, uint64_t version, uint32_t page,
                                   uint32_t *number);

/* Gives the database `path` the content of these pages, in one transaction; who reads it meanwhile
 * sees the earlier content or this. It is created if it is not there. Returns 0, or -1 with err. */
int image_write(const unsigned char *pages, uint32_t count, const char *path, struct error *err);

#endif
