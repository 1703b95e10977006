/* buffers.h: device buffers of a rank, filled and compared element by element. */
#ifndef DDPCHECK_TESTS_EMU_NCCL_BUFFERS_H
#define DDPCHECK_TESTS_EMU_NCCL_BUFFERS_H

#include "tests/emu_nccl/ranks.h"

/* Element `index` of what `rank` puts in. */
typedef double fill(int rank, size_t index);

/* Device memory for count elements, filled with `values` (NULL: with a pattern that no result has).
 */
void *buffer_new(ncclDataType_t type, size_t count, fill *values, int rank);
/* A copy in host memory, to be freed. */
void *buffer_fetch(ncclDataType_t type, const void *buffer, size_t count);
void buffer_free(void *buffer);

/* A copy that is done when it returns: cudaMemcpy from pageable memory, or within a device, need
 * not be, and the ranks' streams do not wait for the default stream. */
void copy(void *to, const void *from, size_t bytes);

/* Elements of float buffers, for tests that are not about types. */
void *floats_new(size_t count, float value);
/* Fails unless all elements are `expected`. */
void floats_check(const void *buffer, size_t from, size_t count, float expected);

#endif
