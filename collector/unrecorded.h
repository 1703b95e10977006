/* unrecorded.h: the processes of a job that called NCCL and could not record: what they lacked. */
#ifndef DDPCHECK_UNRECORDED_H
#define DDPCHECK_UNRECORDED_H

/* Removes the marks that processes of this host left in the trace directory
 * (lib/trace/unrecorded_mark.h). Returns how many there were; *error is the errno that one of them
 * gave, and stays as it is if there were none. */
int unrecorded_take(const char *directory, int *error);

#endif
