/* registrations.h: buffers and windows that a program registered. They change nothing here, since
 * all payload goes through shared memory; but usage errors are found, and windows are collective.
 */
#ifndef DDPCHECK_EMU_NCCL_REGISTRATIONS_H
#define DDPCHECK_EMU_NCCL_REGISTRATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ncclComm;

/* The number of a window among all that the communicator ever had, the same on all members. False:
 * it is none. */
bool registrations_window(struct ncclComm *comm, const void *handle, uint64_t *number);
/* Whether [buffer, buffer + bytes) lies in a window of this member. */
bool registrations_cover(struct ncclComm *comm, const void *buffer, size_t bytes);
/* Frees what was never given back. */
void registrations_free(struct ncclComm *comm);

#endif
