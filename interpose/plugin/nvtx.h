/* nvtx.h: the shim as an NVTX injection library (nvtx.c). */
#ifndef DDPCHECK_NVTX_H
#define DDPCHECK_NVTX_H

#include "interpose/record/thread.h"

/* Records what the environment says about the program's ranges: DDPCHECK_ITERATION, the name of
 * those that are its iterations. Called when the shim wakes. */
void nvtx_tell_settings(struct thread *thread);

#endif
