/* log_stack.h: the stacks that PyTorch's watchdog prints of collectives that failed. */
#ifndef DDPCHECK_IMPORT_LOG_STACK_H
#define DDPCHECK_IMPORT_LOG_STACK_H

#include "lib/import/log_job.h"
#include "lib/import/log_text.h"

/* Takes a line of a stack. Returns 1, 0 if it is none, -1 when memory is short. */
int log_stack_line(struct log_job *job, const char *text, size_t bytes);
/* The stack of the speaker's first failed collective, for import_call.stack; 0 if none is known. */
uint64_t log_stack_import(struct log_job *job, struct log_speaker speaker, int process);
/* Where in the program that is: "metrics.py:57 (reduce)". False if no stack is known. */
bool log_stack_place(const struct log_job *job, struct log_speaker speaker, char *to, size_t bytes);
void log_stack_free(struct log_job *job);

#endif
