/* exited_rank.h: DC205, a rank that ended or gave a communicator up: what to do about it, and
 * whether the job got over it.
 *
 * An elastic launcher (torchrun --max-restarts) ends all ranks when one fails and starts them anew,
 * with a higher restart count. The rank that ended stays the finding of its restart attempt, DC205;
 * once a later one has issued operations the job is over it. Any other hang stays open: the program
 * that made it runs again. */
#ifndef DDPCHECK_EXITED_RANK_H
#define DDPCHECK_EXITED_RANK_H

#include "analyzer/engine.h"
#include "lib/finding/act.h"

/* What to do about a rank that ended as `act` says, for which others wait or not. */
const char *exited_rank_todo(const struct act *act, bool is_awaited);

/* The process of the next restart attempt that is at work; NULL: none. */
const struct process *exited_rank_successor(const struct analyzer *analyzer,
                                            const struct process *process);

/* Closes what later restart attempts got over. Called after the hangs were reported. */
void hang_close_restarted(struct analyzer *analyzer);

/* Closes what a rank did that aborted a communicator, once the others did and all went on. */
void hang_close_aborted(struct analyzer *analyzer);

/* Some finding that is an error is open: it says more than that a rank ended. */
bool hang_has_open_error(const struct analyzer *analyzer);

#endif
