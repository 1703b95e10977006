/* png_file.h: generated images as a PNG file. */
#ifndef DDPTRAIN_PNG_FILE_H
#define DDPTRAIN_PNG_FILE_H

#include "lib/base/error.h"

/* pixels: count grey images of image x image floats in -1..1 (others are clamped). The grid has
 * `columns` columns and a border of 2 pixels around each image. An existing file is replaced only
 * once the new one is complete. Returns 0, or -1 with a message. */
int samples_png_write(const char *path, const float *pixels, int count, int columns, int image,
                      struct error *err);

#endif
