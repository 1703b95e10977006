/* log_phrases.h: the texts in a job's log that say by themselves what went wrong, and what to do
 * about each. */
#ifndef DDPCHECK_IMPORT_LOG_PHRASES_H
#define DDPCHECK_IMPORT_LOG_PHRASES_H

#include "lib/import/scan.h"

struct log_phrase {
    const char *template; /* scan.h; {i:rank} is the rank that it is about */
    int how;              /* of log_messages_add */
    const char *who;
    const char *says; /* what is reported; NULL: the line from where the template fits */
    const char *todo;
};

/* What to do about a port that another process has, and about a master that does not answer. */
extern const char log_todo_port[], log_todo_connect[];

/* Who says what the kernel logs: struct log_phrase's `who`. */
extern const char log_who_kernel[];

/* The first phrase of the table that is in the text, and where; NULL: none is. */
const struct log_phrase *log_phrase_find(const char *text, struct scanned *found);

#endif
