/* timeline_cells.h: how much of the time of each cell of a timeline something lasted, and the
 * characters that show it. */
#ifndef DDPCHECK_TUI_TIMELINE_CELLS_H
#define DDPCHECK_TUI_TIMELINE_CELLS_H

#include <stdbool.h>
#include <stdint.h>

enum level { LEVEL_NONE, LEVEL_ISSUED, LEVEL_STARTED, LEVEL_MISSING, LEVELS };

/* Cells of `lines` lines and `width` columns, which show the time from begin_ns to end_ns. */
struct cells {
    uint64_t begin_ns, end_ns;
    int lines, width;
    uint8_t *share[LEVELS]; /* of each cell: how much of its time a level lasted */
    uint8_t *mark;          /* of each cell: which of cells_marks() it shows */
};

/* Makes them, from lines, width and times. Returns 0 (cells_free it), or -1 when memory is short.
 */
int cells_make(struct cells *cells);
void cells_free(struct cells *cells);
/* The level lasts from from_ns to to_ns on this line. */
void cells_fill(struct cells *cells, int line, uint64_t from_ns, uint64_t to_ns, enum level level);
/* Sets `mark` of all cells, once they are filled. */
void cells_set_marks(struct cells *cells);
/* The marks of one line. */
const uint8_t *cells_line(const struct cells *cells, int line);
/* Nothing was filled; marks are set. */
bool cells_are_empty(const struct cells *cells);
/* The character of each mark. */
const char *const *cells_marks(bool ascii);
/* "  ░▒▓ called ▂▄▆█ running ! missing" */
const char *cells_legend(bool ascii);

#endif
