/* canvas.c: draws lines and text into an image. */
#include "trainer/canvas.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/check.h"
#include "trainer/png_file.h"

/* A glyph of 3 x 5 dots: each octal digit is a row. */
static const unsigned short digits[10] = {075557, 026227, 071747, 071717, 055711,
                                          074717, 074757, 071244, 075757, 075717};
static const unsigned short letters[26] = {
    025755, 065656, 034443, 065556, 074647, 074644, 034553, 055755, 072227,
    011152, 055655, 044447, 057755, 065555, 025552, 065644, 025563, 065655,
    034216, 072222, 055557, 055522, 055775, 055255, 055222, 071247,
};
enum { COLUMNS = 3, ROWS = 5, DOT = 2 };

void canvas_open(struct canvas *canvas, int width, int height)
{
    size_t bytes = (size_t)width * (size_t)height * 3;
    *canvas = (struct canvas){.width = width, .height = height, .pixels = allocate(bytes, 1)};
    memset(canvas->pixels, 0xff, bytes);
}

void canvas_close(struct canvas *canvas)
{
    free(canvas->pixels);
}

static void fill_square(struct canvas *canvas, int left, int top, int size, struct color color)
{
    for (int y = top; y < top + size; y++) {
        for (int x = left; x < left + size; x++) {
            if (x < 0 || y < 0 || x >= canvas->width || y >= canvas->height)
                continue;
            unsigned char *pixel = canvas->pixels +
                                   3 * ((size_t)y * (size_t)canvas->width + (size_t)x);
            pixel[0] = color.red;
            pixel[1] = color.green;
            pixel[2] = color.blue;
        }
    }
}

void canvas_line(struct canvas *canvas, int x0, int y0, int x1, int y1, int thickness,
                 struct color color)
{
    int dx = x1 - x0, dy = y1 - y0, steps = abs(dx) > abs(dy) ? abs(dx) : abs(dy);
    int parts = steps ? steps : 1;
    for (int i = 0; i <= steps; i++)
        fill_square(canvas, x0 + dx * i / parts, y0 + dy * i / parts, thickness, color);
}

static unsigned glyph_of(unsigned char character)
{
    if (isdigit(character))
        return digits[character - '0'];
    if (isalpha(character))
        return letters[toupper(character) - 'A'];
    if (character == '.')
        return 2;
    return character == '-' ? 0700 : 0;
}

void canvas_text(struct canvas *canvas, int x, int y, const char *text, struct color color)
{
    for (; *text; text++, x += CANVAS_GLYPH_WIDTH) {
        unsigned glyph = glyph_of((unsigned char)*text);
        for (int dot = 0; dot < COLUMNS * ROWS; dot++)
            if (glyph >> (COLUMNS * ROWS - 1 - dot) & 1)
                fill_square(canvas, x + dot % COLUMNS * DOT, y + dot / COLUMNS * DOT, DOT, color);
    }
}

int canvas_write(const struct canvas *canvas, const char *path, struct error *err)
{
    return png_file_write(path, canvas->pixels, canvas->width, canvas->height, PNG_FILE_RGB, err);
}
