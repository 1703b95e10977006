/* history.c: writes the printed losses as CSV and as a plot. */
#include "trainer/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/canvas.h"
#include "trainer/check.h"

enum { WIDTH = 800, HEIGHT = 480, LEFT = 72, RIGHT = 24, TOP = 40, BOTTOM = 48, TICKS = 8 };

static const struct color grid = {225, 225, 225}, ink = {70, 70, 70};
static const struct color curves[HISTORY_MAX_LOSSES] = {{31, 119, 180}, {214, 96, 20}};

/* A plot on its page: what the edges of the frame stand for. */
struct axes {
    struct canvas canvas;
    double first, last; /* iterations */
    double highest;     /* loss; the lowest is 0 */
};

void history_open(struct history *history, const char *const *names)
{
    *history = (struct history){.names = names};
}

void history_close(struct history *history)
{
    free(history->points);
}

void history_add(struct history *history, int iteration, const double *losses)
{
    if (history->count == history->room) {
        history->room = history->room ? 2 * history->room : 64;
        history->points = realloc(history->points, history->room * sizeof *history->points);
        if (!history->points)
            fatal("out of host memory for the losses of %zu iterations", history->room);
    }
    struct history_point *point = &history->points[history->count++];
    *point = (struct history_point){.iteration = iteration};
    for (int i = 0; i < HISTORY_MAX_LOSSES && history->names[i]; i++)
        point->losses[i] = losses[i];
}

/* --- from numbers to pixels --- */

static int x_of(const struct axes *axes, double iteration)
{
    double part = axes->last > axes->first ? (iteration - axes->first) / (axes->last - axes->first)
                                           : 0;
    return LEFT + (int)lround(part * (WIDTH - LEFT - RIGHT));
}

static int y_of(const struct axes *axes, double loss)
{
    double part = loss / axes->highest;
    return HEIGHT - BOTTOM - (int)lround(fmin(fmax(part, 0), 1) * (HEIGHT - TOP - BOTTOM));
}

/* 1, 2 or 5 times a power of ten, so that at most TICKS steps fit into `range`. */
static double nice_step(double range)
{
    double power = pow(10, floor(log10(range / TICKS)));
    static const double factors[] = {1, 2, 5};
    for (int i = 0; i < 3; i++)
        if (factors[i] * power * TICKS >= range)
            return factors[i] * power;
    return 10 * power;
}

/* --- drawing --- */

static int text_width(const char *text)
{
    return (int)strlen(text) * CANVAS_GLYPH_WIDTH;
}

static void draw_iterations(struct axes *axes)
{
    double step = fmax(nice_step(fmax(axes->last - axes->first, 1)), 1);
    for (double at = ceil(axes->first / step) * step; at <= axes->last; at += step) {
        char text[32];
        int x = x_of(axes, at);
        snprintf(text, sizeof text, "%.0f", at);
        canvas_line(&axes->canvas, x, TOP, x, HEIGHT - BOTTOM, 1, grid);
        canvas_text(&axes->canvas, x - text_width(text) / 2, HEIGHT - BOTTOM + 8, text, ink);
    }
    canvas_text(&axes->canvas, WIDTH - RIGHT - text_width("iteration"),
                HEIGHT - CANVAS_GLYPH_HEIGHT - 8, "iteration", ink);
}

static void draw_losses(struct axes *axes)
{
    double step = nice_step(axes->highest);
    for (int i = 0; i * step <= axes->highest * 1.0001; i++) {
        char text[32];
        int y = y_of(axes, i * step);
        snprintf(text, sizeof text, "%.3g", i * step);
        canvas_line(&axes->canvas, LEFT, y, WIDTH - RIGHT, y, 1, grid);
        canvas_text(&axes->canvas, LEFT - 8 - text_width(text), y - CANVAS_GLYPH_HEIGHT / 2, text,
                    ink);
    }
    canvas_text(&axes->canvas, 12, 12, "loss", ink);
}

static void draw_curve(struct axes *axes, const struct history *history, int loss)
{
    const struct history_point *before = NULL;
    for (size_t i = 0; i < history->count; i++) {
        const struct history_point *point = &history->points[i];
        if (!isfinite(point->losses[loss])) {
            before = NULL;
            continue;
        }
        const struct history_point *from = before ? before : point;
        canvas_line(&axes->canvas, x_of(axes, from->iteration), y_of(axes, from->losses[loss]),
                    x_of(axes, point->iteration), y_of(axes, point->losses[loss]), 2, curves[loss]);
        before = point;
    }
}

static void draw_names(struct axes *axes, const struct history *history)
{
    int x = LEFT;
    for (int i = 0; history->names[i]; i++) {
        canvas_line(&axes->canvas, x, 16, x + 20, 16, 3, curves[i]);
        canvas_text(&axes->canvas, x + 28, 12, history->names[i], ink);
        x += 28 + text_width(history->names[i]) + 24;
    }
}

static double highest_loss(const struct history *history)
{
    double highest = 0;
    for (size_t i = 0; i < history->count; i++)
        for (int k = 0; history->names[k]; k++)
            if (isfinite(history->points[i].losses[k]))
                highest = fmax(highest, history->points[i].losses[k]);
    return highest > 0 ? highest : 1;
}

int history_plot(const struct history *history, const char *path, struct error *err)
{
    struct axes axes = {.highest = highest_loss(history)};
    if (history->count) {
        axes.first = history->points[0].iteration;
        axes.last = history->points[history->count - 1].iteration;
    }
    canvas_open(&axes.canvas, WIDTH, HEIGHT);
    draw_iterations(&axes);
    draw_losses(&axes);
    for (int i = 0; history->names[i]; i++)
        draw_curve(&axes, history, i);
    draw_names(&axes, history);
    int status = canvas_write(&axes.canvas, path, err);
    canvas_close(&axes.canvas);
    return status;
}
