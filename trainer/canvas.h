/* canvas.h: lines and small text on a white page, for plots. Points outside of the page are left
 * out. */
#ifndef DDPTRAIN_CANVAS_H
#define DDPTRAIN_CANVAS_H

#include "lib/base/error.h"

enum {
    CANVAS_GLYPH_WIDTH = 8,
    CANVAS_GLYPH_HEIGHT = 10
}; /* of a character with the space behind it, in pixels */

struct color {
    unsigned char red, green, blue;
};

struct canvas {
    int width, height;
    unsigned char *pixels; /* RGB, owned */
};

void canvas_open(struct canvas *canvas, int width, int height);
void canvas_close(struct canvas *canvas);
void canvas_line(struct canvas *canvas, int x0, int y0, int x1, int y1, int thickness,
                 struct color color);
/* Digits, letters (drawn as capitals), '.' and '-'; anything else is a gap. x and y are the left
 * upper corner. */
void canvas_text(struct canvas *canvas, int x, int y, const char *text, struct color color);
/* As png_file_write(). */
int canvas_write(const struct canvas *canvas, const char *path, struct error *err);

#endif
