/* registrations.h: buffers and windows that a program registered. They change nothing here, since
 * all payload goes through shared memory; but usage errors are found, and windows are collective.
 */
#ifndef DDPCHECK_EMU_NCCL_REGISTRATIONS_H
#define DDPCHECK_EMU_NCCL_REGISTRATIONS_H

struct ncclComm;

/* Frees what was never given back. */
void registrations_free(struct ncclComm *comm);

#endif
