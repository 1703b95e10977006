/* copies.h: a batch of copies, as words.c hands it on. */
#ifndef DDPCHECK_COPIES_H
#define DDPCHECK_COPIES_H

#include <stdint.h>

struct call;

/* One record for each copy of a cudaMemcpyBatchAsync with these arguments. */
void copies_batch(struct call *call, int result, const uint64_t *words);

#endif
