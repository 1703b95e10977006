/* start.h: starts the shim at the process's first NCCL call. */
#ifndef DDPCHECK_START_H
#define DDPCHECK_START_H

#include <stdbool.h>

/* Starts recording: makes the ring file, describes the process, starts a collector if the trace
 * directory has none. What fails is printed in one line on stderr, and the shim stays off: the job
 * runs on unchanged. Called with the thread's in-shim flag set; the first caller works, the others
 * wait for it. Returns true if the shim is active. */
bool shim_start(void);

#endif
