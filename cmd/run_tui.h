/* run_tui.h: `ddpcheck run --tui`: the job runs apart from the terminal, which shows the TUI. */
#ifndef DDPCHECK_RUN_TUI_H
#define DDPCHECK_RUN_TUI_H

#include "lib/base/error.h"

/* Calls job(context, ready) in a process of its own, without the terminal: its output goes to
 * DIRECTORY/output.log. It must close `ready` once the trace directory is ready for a new trace.
 * Shows the TUI on the directory until the user leaves it; then waits for the job, passing signals
 * on to it. Returns job's exit status, or -1 with err. */
int run_under_tui(int (*job)(void *context, int ready), void *context, const char *directory,
                  struct error *err);

#endif
