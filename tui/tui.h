/* tui.h: the terminal UI: see in ten seconds why the job hangs. Reads databases only; leaving it
 * never touches the job. */
#ifndef DDPCHECK_TUI_H
#define DDPCHECK_TUI_H

#include <stdbool.h>

#include "lib/base/error.h"

struct tui_options {
    const char *const *paths; /* databases, or directories of databases */
    int count;
    const char *title; /* shown instead of the database's path; NULL the path */
    int view;          /* number of the first view in view_choices (view.h), from 0 */
    bool color, ascii;
    double wait_s;                  /* how long to wait for the first database to appear */
    bool (*give_up)(void *context); /* asked while waiting: true ends it; NULL never */
    void *context;                  /* of give_up, trouble and instead */
    /* Asked now and then: what is wrong with what writes the database, for the status line (empty:
     * nothing); NULL never. */
    void (*trouble)(void *context, struct error *trouble);
    /* Asked now and then, until it is true: whether there is a database to be shown instead of
     * `paths`, and under which title (left as it is: its path). Both outlive the TUI. NULL never.
     */
    bool (*instead)(void *context, const char **path, const char **title);
    int *ended_by; /* set to the signal that ended it: SIGINT (Ctrl-C), SIGTERM, SIGHUP (also: the
                      terminal is gone), 0 the user; NULL: nobody asks */
    const char *waiting_for; /* said on stderr when it takes longer; NULL nothing */
};

/* Shows the traces until the user leaves. Returns 0, or -1 with err. */
int tui_run(const struct tui_options *options, struct error *err);

/* Prints the view once on stdout, as text of `width` columns; of long tables the first rows.
 * Returns 0, or -1 with err. */
int tui_print(const struct tui_options *options, int width, struct error *err);

#endif
