/* commands.h: what keys do, each with one number (keys.c). */
#ifndef DDPCHECK_TUI_COMMANDS_H
#define DDPCHECK_TUI_COMMANDS_H

#include "tui/app.h"

typedef void app_command(struct app *app, int argument);

app_command app_do_move;   /* by `argument` rows */
app_command app_do_page;   /* by `argument` pages */
app_command app_do_jump;   /* to the first row (0), to the last (1) */
app_command app_do_shift;  /* the last column by `argument` characters */
app_command app_do_open;   /* what the selected row is about */
app_command app_do_back;   /* to the view below */
app_command app_do_view;   /* to a numbered view */
app_command app_do_tab;    /* to the numbered view `argument` further */
app_command app_do_find;   /* the next (1) or previous (-1) row that holds the searched text */
app_command app_do_sort;   /* by the next column (1), not at all (-1) */
app_command app_do_comm;   /* to the next (1) or previous (-1) communicator */
app_command app_do_differ; /* to the first operation in which ranks differ */
app_command app_do_zoom;   /* closer (1), wider (-1) */
app_command app_do_pan;    /* later (1), earlier (-1) */
app_command app_do_whole;  /* all of the time line */
app_command app_do_rank;   /* to the page of the job's rank `argument` */
app_command app_do_close;  /* the page at hand; the UI where it is a numbered view */
app_command app_do_pause, app_do_explain, app_do_write, app_do_mouse, app_do_help, app_do_redraw,
    app_do_leave, app_do_click, app_do_stacks, app_do_edit;

/* Shows a message until the next key. */
void app_say(struct app *app, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
