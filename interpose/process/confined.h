/* confined.h: ends the recording of a process that forbids itself system calls (confine.h). */
#ifndef DDPCHECK_CONFINED_H
#define DDPCHECK_CONFINED_H

/* Calls that are recorded now still end; later ones pass through. Prints a line if the process
 * calls NCCL. */
void confined_stop(void);

#endif
