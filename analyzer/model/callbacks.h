/* callbacks.h: host functions on streams (cudaLaunchHostFunc, cudaStreamAddCallback) that have not
 * returned. */
#ifndef DDPCHECK_CALLBACKS_H
#define DDPCHECK_CALLBACKS_H

#include "analyzer/engine.h"

struct callback {
    uint64_t launch;       /* serial of its LAUNCH record */
    struct place place;    /* on its stream */
    struct site site;      /* of the launch */
    uint16_t api;          /* of the launch */
    struct thread *thread; /* that runs it; NULL before it begins */
    uint64_t begin_ns;
    struct waiting_op *node; /* in the wait graph while one exists, else NULL */
    struct callback *next;
};

/* LAUNCH of one whose begin and end are reported; thread->work says where it stands. ENGINE_*. */
int callbacks_launched(const struct event *event);
/* notice_host_function, notice_host_function_end. ENGINE_*. */
int callbacks_notice(struct event *event);
/* Its thread is forgotten. */
void callbacks_forget_thread(struct process *process, const struct thread *thread);
void callbacks_free(struct process *process);

#endif
