/* site_operation.h: what of PyTorch made a call: "barrier()", "gradient bucket of DDP". */
#ifndef DDPCHECK_SITE_OPERATION_H
#define DDPCHECK_SITE_OPERATION_H

#include "lib/trace/site.h"

enum { SITE_OPERATION_BYTES = 96 };

/* What DDP's reduction of gradients is called. */
extern const char site_gradient_bucket[];

/* By all frames of the call, as trace_frames gives them; "" where the call's own name says as much,
 * or nothing is known. `call` is the call as people read it, "ncclBroadcast(count=3)", or NULL.
 * Return text. */
char *site_operation(const struct frame *frames, int count, const char *call, char *text,
                     size_t bytes);
char *site_operation_of(struct trace *trace, int process, uint64_t stack, bool is_address,
                        const char *call, char *text, size_t bytes);

#endif
