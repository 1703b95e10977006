/* png_file.c: writes a PNG file atomically. */
#include "trainer/png_file.h"

#include <errno.h>
#include <limits.h>
#include <png.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int png_file_write(const char *path, const unsigned char *pixels, int width, int height,
                   enum png_file_bytes bytes, struct error *err)
{
    char temporary[PATH_MAX];
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)width,
                     .height = (png_uint_32)height,
                     .format = bytes == PNG_FILE_RGB ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY};
    int status = 0;
    if (snprintf(temporary, sizeof temporary, "%s.part", path) >= (int)sizeof temporary)
        return error_set(err, "can't write %s: the name is too long", path);
    if (!png_image_write_to_file(&png, temporary, 0, pixels, width * (int)bytes, NULL))
        status = error_set(err, "can't write %s: %s", temporary, png.message);
    else if (rename(temporary, path) != 0)
        status = error_set(err, "can't rename %s to %s: %s", temporary, path, strerror(errno));
    if (status != 0)
        unlink(temporary);
    return status;
}
