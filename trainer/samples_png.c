/* samples_png.c: writes generated images as a grid. */
#include "trainer/samples_png.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/check.h"
#include "trainer/png_file.h"

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

    int status = png_file_write(path, grid, width, height, PNG_FILE_GREY, err);
    free(grid);
    return status;
}
