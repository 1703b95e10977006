/* words.h: the place of what the GPU writes, where the ring file is on a disk. */
#ifndef DDPCHECK_WORDS_H
#define DDPCHECK_WORDS_H

#include "lib/trace/ring.h"

/* Puts the slots and the hash entries of a new ring file into a file in /dev/shm, mapped over their
 * place, and its name into the header. Where that can't be done they stay in the ring file. */
void words_place(struct ring_file *file);

#endif
