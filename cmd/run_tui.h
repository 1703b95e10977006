/* run_tui.h: `ddpcheck run --tui`: the job runs apart from the terminal, which shows the TUI. */
#ifndef DDPCHECK_RUN_TUI_H
#define DDPCHECK_RUN_TUI_H

#include "lib/base/error.h"

/* Calls job(context, ready) in a process of its own, without the terminal: its output goes to
 * DIRECTORY/output.log. Once the trace directory is ready for a new trace it must write the address
 * of the job's hub into `ready`, if that is elsewhere, and close it. Shows the TUI on the
 * directory, or the hub's job as soon as that has several hosts, until the user leaves it; then
 * waits for the job, passing signals on to it. Returns job's exit status, or -1 with err. */
int run_under_tui(int (*job)(void *context, int ready), void *context, const char *directory,
                  struct error *err);

#endif
