/* footer.h: the last line: the keys of the views, shortened until they fit. */
#ifndef DDPCHECK_TUI_FOOTER_H
#define DDPCHECK_TUI_FOOTER_H

/* How long the names of the views may be, so that all keys fit into `width` columns. */
int footer_letters(int width);
/* Where the key of view `view` (from 0) begins, and how many columns it has. */
void footer_place(int view, int letters, int *column, int *columns);
/* What is to the right of the views at this width: "? help  q quit", "? q". */
const char *footer_rest(int width);

#endif
