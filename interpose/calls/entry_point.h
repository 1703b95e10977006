/* entry_point.h: whom functions of the driver are handed out to. */
#ifndef DDPCHECK_ENTRY_POINT_H
#define DDPCHECK_ENTRY_POINT_H

#include <stdbool.h>

/* The caller (a return address) is CUDA itself: it gets the real function. Why: docs/decisions.md.
 */
bool entry_point_is_for_cuda(const void *caller);

#endif
