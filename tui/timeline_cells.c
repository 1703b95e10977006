/* timeline_cells.c: fills the cells of a timeline, and chooses the character of each: the level
 * that lasted longest there, darker where that was more of its time. */
#include "tui/timeline_cells.h"

#include <stdlib.h>

/* Shares are parts of WHOLE; the shades of one level follow each other. */
enum { WHOLE = 240, SHADES = 4, MARKS = LEVELS * SHADES };

static const char *const wide_marks[MARKS] = {
    " ", " ", " ", " ", "░", "░", "▒", "▓", "▂", "▄", "▆", "█", "!", "!", "!", "!",
};
static const char *const plain_marks[MARKS] = {
    " ", " ", " ", " ", ".", ".", "-", "=", ":", "+", "*", "#", "!", "!", "!", "!",
};

int cells_make(struct cells *cells)
{
    size_t count = (size_t)cells->lines * (size_t)cells->width;
    uint8_t *all = calloc(count * (LEVELS + 1) + 1, 1);
    for (int i = 0; i < LEVELS; i++)
        cells->share[i] = all ? all + (size_t)i * count : NULL;
    cells->mark = all ? all + (size_t)LEVELS * count : NULL;
    return all ? 0 : -1;
}

void cells_free(struct cells *cells)
{
    free(cells->share[0]);
    *cells = (struct cells){0};
}

/* In columns from the left edge. */
static double column_of(const struct cells *cells, uint64_t time_ns)
{
    if (time_ns <= cells->begin_ns)
        return 0;
    if (time_ns >= cells->end_ns)
        return cells->width;
    return (double)(time_ns - cells->begin_ns) / (double)(cells->end_ns - cells->begin_ns) *
           cells->width;
}

void cells_fill(struct cells *cells, int line, uint64_t from_ns, uint64_t to_ns, enum level level)
{
    if (to_ns < cells->begin_ns || from_ns > cells->end_ns)
        return;
    double from = column_of(cells, from_ns), to = column_of(cells, to_ns);
    for (int i = (int)from; i < cells->width && i <= to; i++) {
        double begin = from > i ? from : i;
        double end = to < i + 1 ? to : i + 1;
        uint8_t *cell = &cells->share[level][line * cells->width + i];
        double share = *cell + (end - begin) * WHOLE;
        if (share < 1) /* shorter than what can be shown, but it was there */
            share = 1;
        *cell = share < WHOLE ? (uint8_t)share : WHOLE;
    }
}

/* A missing rank is marked; else what lasted longer. */
static uint8_t mark_of(const struct cells *cells, size_t cell)
{
    enum level most = LEVEL_NONE;
    int share = 0;
    for (enum level level = LEVEL_ISSUED; level < LEVELS; level++) {
        int lasted = cells->share[level][cell];
        if (lasted && (lasted >= share || level == LEVEL_MISSING)) {
            most = level;
            share = lasted;
        }
    }
    int shade = share * SHADES / WHOLE;
    return (uint8_t)(most * SHADES + (shade < SHADES ? shade : SHADES - 1));
}

void cells_set_marks(struct cells *cells)
{
    size_t count = (size_t)cells->lines * (size_t)cells->width;
    for (size_t i = 0; i < count; i++)
        cells->mark[i] = mark_of(cells, i);
}

const uint8_t *cells_line(const struct cells *cells, int line)
{
    return cells->mark + (size_t)line * (size_t)cells->width;
}

bool cells_are_empty(const struct cells *cells)
{
    size_t count = (size_t)cells->lines * (size_t)cells->width;
    for (size_t i = 0; i < count; i++)
        if (cells->mark[i] / SHADES != LEVEL_NONE)
            return false;
    return true;
}

const char *const *cells_marks(bool ascii)
{
    return ascii ? plain_marks : wide_marks;
}

const char *cells_legend(bool ascii)
{
    return ascii ? "  .-= called :+*# running ! missing" : "  ░▒▓ called ▂▄▆█ running ! missing";
}
