/* table.h: the widget that shows a table: selection, scrolling, filter, order, search. It keeps its
 * place when the rows are made anew. */
#ifndef DDPCHECK_TUI_TABLE_H
#define DDPCHECK_TUI_TABLE_H

#include "tui/rows.h"

enum { TABLE_TEXT = 64 };

/* Zero-initialised is a table that shows all rows as they come. */
struct table {
    uint64_t selected_id;
    bool has_selected;
    int selected, top; /* places in `order` */
    int height;        /* rows that there was room for */
    int shift;         /* columns that the last cell is shifted to the left */
    int sort;          /* column + 1, negative for the other way round; 0 as they come */
    char filter[TABLE_TEXT], search[TABLE_TEXT];
    int *order; /* rows that are shown */
    int *lines; /* that each of them has on the screen: 0 outside of it, more than 1 where all rows
                   fit and the last cell needs them */
    size_t order_room, lines_room;
    int shown;
};

void table_free(struct table *table);

/* The rows are new, or filter or order changed: finds the selection again. */
void table_update(struct table *table, const struct rows *rows);
/* Moves the selection by `by` rows; to the ends for INT_MIN and INT_MAX. Returns false if it was
 * there already. */
bool table_move(struct table *table, const struct rows *rows, int by);
void table_select(struct table *table, const struct rows *rows, uint64_t id);
/* Goes to the next (1) or the last (-1) row that holds table->search, all round. False if there is
 * none. */
bool table_find(struct table *table, const struct rows *rows, int direction);
/* Goes to the first row from `from` on that holds table->search, all round. */
bool table_find_from(struct table *table, const struct rows *rows, int from);
/* The selected row, or NULL. */
const struct row *table_selected(const struct table *table, const struct rows *rows);

/* Draws it from `line` on. Returns how many lines the rows themselves had: none where it has no
 * height. */
int table_draw(struct table *table, const struct rows *rows, int line, int height, int width);
/* The row that a line of the last drawing shows becomes the selected one. False if there is none.
 */
bool table_click(struct table *table, const struct rows *rows, int line, int clicked);

#endif
