/* failed_program.h: the program that `ddpcheck run` started, where it failed and no process of its
 * job that is recorded did: a launcher or a script knows of processes that left no record. */
#ifndef DDPCHECK_COLLECTOR_FAILED_PROGRAM_H
#define DDPCHECK_COLLECTOR_FAILED_PROGRAM_H

#include "lib/base/error.h"

struct collector;

/* Opens the database if there is none, and adds the program's process, how it ended and the
 * function that it lacks to the batch. Returns 1 if it did, 0 if there is nothing to add, or -1
 * with err. */
int collector_add_failed_program(struct collector *collector, struct error *err);

/* Removes the marks that processes of this host which could not record left in the trace directory
 * (lib/trace/unrecorded_mark.h). Returns how many there were; *error is the errno that one of them
 * gave, and stays as it is if there were none. */
int unrecorded_take(const char *directory, int *error);

#endif
