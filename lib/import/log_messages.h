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

/* Takes a line that is neither NCCL's nor the watchdog's. Returns 1 if it said something, 0 if not,
 * -1 when memory is short. */
int log_messages_line(struct log_job *job, const char *text, size_t bytes);
/* Adds what a rank said: `who`, one line, and what to do. Repetitions are dropped. */
int log_messages_add(struct log_job *job, struct log_speaker speaker, enum said how,
                     const char *who, const char *text, const char *todo);
/* Gives the sink all of them and frees them. */
int log_messages_end(struct log_job *job);

/* log_python.c: tracebacks. Likewise. */
int log_python_line(struct log_job *job, const char *text, size_t bytes);
/* A file of the program's own, not of Python or a package. */
bool log_is_users_file(const char *path);
/* log_elastic.c: torchelastic's report of who failed first. Likewise. */
int log_elastic_line(struct log_job *job, const char *text, size_t bytes);
int log_elastic_end(struct log_job *job); /* before log_messages_end */
/* log_stalls.c: stalls in Horovod and XLA. Likewise. */
int log_stalls_line(struct log_job *job, const char *text, size_t bytes);
int log_stalls_end(struct log_job *job); /* before log_messages_end */
/* log_reports.c: reports about all ranks: TORCH_DISTRIBUTED_DEBUG=DETAIL, the desync report, the
 * monitored barrier. Likewise. */
int log_reports_line(struct log_job *job, const char *text, size_t bytes);

#endif
