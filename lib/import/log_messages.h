/* log_messages.h: lines of a job's log that say what went wrong: of PyTorch, Python, launchers, the
 * kernel, and NCCL's errors in other texts. */
#ifndef DDPCHECK_IMPORT_LOG_MESSAGES_H
#define DDPCHECK_IMPORT_LOG_MESSAGES_H

#include "lib/import/log_job.h"
#include "lib/import/log_text.h"

enum { MESSAGE_BYTES = 640 };

/* What messages do not say of calls. */
#define LACKS_MESSAGES                                                                          \
    (LACKS_DATATYPE | LACKS_REDOP | LACKS_ROOT | LACKS_ADDRESSES | LACKS_STREAM | LACKS_GROUP | \
     LACKS_TIMING | LACKS_P2P | LACKS_SETUP | LACKS_START | LACKS_UNRETURNED)

/* Errors that are notes where something stronger is known: the reason of an end, or what somebody
 * waited for. The stronger, the lower. */
enum { LOG_SAID_ENDED = SAID_NAMED + 1, LOG_SAID_WAITED };

/* Adds what a rank said: `how` (enum said, or one of those above), `who`, one line, and what to do.
 * Repetitions are dropped. */
int log_messages_add(struct log_job *job, struct log_speaker speaker, int how, const char *who,
                     const char *text, const char *todo);
/* Its host's clock is so much ahead of the others': what it said was earlier. */
void log_messages_earlier(struct log_job *job, int rank, uint64_t by_ns);
/* Nothing was said after it: what seems to be later has another host's time. */
void log_messages_until(struct log_job *job, uint64_t last_ns);
/* What the rank raised between these times: "rank 1 raised ValueError"; NULL: nothing. */
const char *log_messages_exception(const struct log_job *job, int rank, uint64_t from_ns,
                                   uint64_t until_ns);
/* log_stack.c: the stack of the speaker's first failed collective, for import_call.stack; 0 if none
 * is known. */
uint64_t log_stack_import(struct log_job *job, struct log_speaker speaker, int process);
/* Where in the program that is: "metrics.py:57 (reduce)". False if no stack is known. */
bool log_stack_place(const struct log_job *job, struct log_speaker speaker, char *to, size_t bytes);
/* A line of the program in a stack that a verdict of others has; file "": none is known. */
struct log_place {
    char file[160], function[96];
    int line;
};
/* "forward at /w/model.py:140": takes the innermost frame of the program's own. False: the text is
 * no frame. */
bool log_place_take(struct log_place *place, const char *text);
/* For import_call.stack; 0 if no place is known. */
uint64_t log_place_import(struct import *import, int process, const struct log_place *place);
/* log_kernel.c: adds an Xid of a GPU, by its number; `text` is how it was said. As
 * log_messages_add. */
int log_xid_add(struct log_job *job, int xid, const char *text);
/* log_python.c: a file of the program's own, not of Python or a package. */
bool log_is_users_file(const char *path);

#endif
