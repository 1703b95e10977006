/* hardware.h: faults of GPUs and links, which only emulated ones can be given. */
#ifndef DDPTRAIN_HARDWARE_H
#define DDPTRAIN_HARDWARE_H

#include "lib/base/error.h"
#include "trainer/faults.h"

/* Sets what the emulated GPUs read when they are used for the first time, unless the environment
 * has it: call it before that, on all ranks. Does nothing for other faults. Fails where GPUs are
 * real. */
int hardware_make_faulty(const struct fault *fault, struct error *err);

#endif
