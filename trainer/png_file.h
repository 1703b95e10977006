/* png_file.h: writes a PNG so that a file of that name is replaced only once the new one is
 * complete. */
#ifndef DDPTRAIN_PNG_FILE_H
#define DDPTRAIN_PNG_FILE_H

#include "lib/base/error.h"

/* Pixels row by row, of one byte (grey) or three (RGB). */
enum png_file_bytes { PNG_FILE_GREY = 1, PNG_FILE_RGB = 3 };

/* Returns 0, or -1 with a message that names the file. */
int png_file_write(const char *path, const unsigned char *pixels, int width, int height,
                   enum png_file_bytes bytes, struct error *err);

#endif
