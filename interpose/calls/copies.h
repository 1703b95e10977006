/* copies.h: a batch of copies, as words.c forwards it. */
#ifndef DDPCHECK_COPIES_H
#define DDPCHECK_COPIES_H

#include <stdint.h>

struct recorded_call;

/* One record for each copy of a cudaMemcpyBatchAsync with these arguments. */
void copies_batch(struct recorded_call *call, int result, const uint64_t *words);

#endif
