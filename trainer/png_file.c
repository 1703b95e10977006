/* png_file.c: writes generated images as a grid into a PNG file, atomically. */
#include "trainer/png_file.h"

#include <errno.h>
#include <limits.h>
#include <png.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

#include "trainer/check.h"

static int write_grey(const char *path, const unsigned char *pixels, int width, int height,
                      struct error *err)
{
    char temporary[PATH_MAX];
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)width,
                     .height = (png_uint_32)height,
                     .format = PNG_FORMAT_GRAY};
    int status = 0;
    if (snprintf(temporary, sizeof temporary, "%s.part", path) >= (int)sizeof temporary)
        return error_set(err, "can't write %s: the name is too long", path);
    if (!png_image_write_to_file(&png, temporary, 0, pixels, width, NULL))
        status = error_set(err, "can't write %s: %s", temporary, png.message);
    else if (rename(temporary, path) != 0)
        status = error_set(err, "can't rename %s to %s: %s", temporary, path, strerror(errno));
    if (status != 0)
        unlink(temporary);
    return status;
}

enum { BORDER = 2, BORDER_GREY = 64 };

static unsigned char grey_of(float value)
{
    float scaled = (value + 1.0f) * 127.5f;
    return (unsigned char)(scaled > 0.0f ? (scaled < 255.0f ? scaled + 0.5f : 255.0f) : 0.0f);
}

static void place_image(unsigned char *grid, int width, const float *pixels, int image, int row,
                        int column)
{
    for (int y = 0; y < image; y++) {
        unsigned char *line = grid + (size_t)(BORDER + row * (image + BORDER) + y) * (size_t)width;
        for (int x = 0; x < image; x++)
            line[BORDER + column * (image + BORDER) + x] = grey_of(pixels[y * image + x]);
    }
}

int samples_png_write(const char *path, const float *pixels, int count, int columns, int image,
                      struct error *err)
{
    int rows = (count + columns - 1) / columns;
    int width = BORDER + columns * (image + BORDER), height = BORDER + rows * (image + BORDER);
    unsigned char *grid = allocate((size_t)width * (size_t)height, 1);
    memset(grid, BORDER_GREY, (size_t)width * (size_t)height);
    for (int i = 0; i < count; i++)
        place_image(grid, width, pixels + (size_t)i * (size_t)image * (size_t)image, image,
                    i / columns, i % columns);

    int status = write_grey(path, grid, width, height, err);
    free(grid);
    return status;
}
