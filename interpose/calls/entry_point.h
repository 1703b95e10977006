/* entry_point.h: whom functions of the driver are handed out to. */
#ifndef DDPCHECK_ENTRY_POINT_H
#define DDPCHECK_ENTRY_POINT_H

#include <stdbool.h>
#include <stdint.h>

/* The caller (a return address) is CUDA itself: it gets the real function. Why:
 * docs/decisions/interpose.md.
 */
bool entry_point_is_for_cuda(const void *caller);

/* Our wrapper of a function of the driver that was found by name, or `real` where there is none of
 * the same form. */
void *entry_point_replace(const char *name, void *real, uint64_t flags, const void *caller);

#endif
