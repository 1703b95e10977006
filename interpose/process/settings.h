/* settings.h: the variables that change how NCCL, CUDA and PyTorch communicate, as the process has
 * them when NCCL reads them. */
#ifndef DDPCHECK_SETTINGS_H
#define DDPCHECK_SETTINGS_H

#include "interpose/shim/thread.h"

/* Emits each such variable (notice_setting) with its value, in which secrets are masked, and who
 * set it; also those that the program has removed. Later calls emit what has changed. */
void settings_record(struct shim_thread *thread);

/* In the child of a fork. */
void settings_forked(void);

#endif
