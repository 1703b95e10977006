/* log_ends.h: what the exit status of a process says. */
#ifndef DDPCHECK_IMPORT_LOG_ENDS_H
#define DDPCHECK_IMPORT_LOG_ENDS_H

#include <stddef.h>

/* How a process ended, "was killed by SIGKILL", into text[bytes]; *todo: what to do. `status` is as
 * Python has it, a signal is negative; 128 and the signal, as shells have it, is read as well.
 * Returns how much it counts, for log_messages_add. */
int log_end_describe(int status, char *text, size_t bytes, const char **todo);

#endif
