/* tui_ras.h: a running job as its RAS sees it, as a trace that the TUI can show: `ddpcheck tui
 * --ras HOST:PORT`.
 *
 * A thread asks once a second, keeps the last snapshots, and puts what they say, imported and
 * analysed, into a database of its own in a private directory, which is removed at the end. */
#ifndef DDPCHECK_TUI_RAS_H
#define DDPCHECK_TUI_RAS_H

#include "lib/base/error.h"

struct tui_ras;

/* Asks for the first time, trying again for `wait_s` seconds; then goes on in a thread. NULL with
 * err. */
struct tui_ras *tui_ras_start(const char *address, double wait_s, struct error *err);
void tui_ras_stop(struct tui_ras *ras);

/* The database; valid until tui_ras_stop. */
const char *tui_ras_database(const struct tui_ras *ras);
/* What is wrong just now, for the status line; empty: nothing. For any thread. */
void tui_ras_trouble(void *ras, struct error *trouble);

#endif
