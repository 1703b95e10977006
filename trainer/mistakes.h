/* mistakes.h: what some of the faults do that no correct program would. */
#ifndef DDPTRAIN_MISTAKES_H
#define DDPTRAIN_MISTAKES_H

#include "trainer/module.h"

/* Sleeps for good, as a rank does whose data never come. */
void mistake_load_data_forever(void) __attribute__((noreturn));

/* The host is busy with something else, and gives the device no work meanwhile. */
void mistake_stall(int milliseconds);

/* Half a second of work that nobody sees, then this process is killed, as by the kernel when memory
 * is short: nothing is flushed, freed or said. */
void mistake_crash(void) __attribute__((noreturn));

/* Asks the device for more memory than it has, and catches the error. Returns true if it really
 * failed. */
bool mistake_run_out_of_memory(int iteration);

/* Registers the module's parameters the other way round, as a model does that is built from a set
 * or a dictionary whose order is not the same in every process. To be called before the module is
 * distributed. */
void mistake_reverse_parameters(struct module *module);

/* Rounds a value that is too large for fp16, as one activation of this rank's batch could be: sets
 * the device's overflow flag. The gradients do not know it. */
void mistake_overflow_half(struct device *device);

/* Moves the module's first weights to another GPU, as `model.conv.to("cuda:1")` would, where no
 * peer access is enabled. Ends the process with a message if there is only one. */
void mistake_move_first_weights(struct module *module);

#endif
