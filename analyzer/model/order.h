/* order.h: which work of one process is done before which other work: happens-before over streams,
 * events and host waits, by CUDA's rules alone. That something happens to be done (progress) orders
 * nothing.
 *
 * Each stream is a timeline of its own; a stream under capture has another one inside of its
 * capture (graphs.h). Work gets a place (clock.h) when it is put on a stream; a stream's clock says
 * what is ahead of the next work on it, an event's what was ahead of its record. What the host has
 * seen done (a wait that returned, a query that said so, a host callback that ran) comes before all
 * that the process issues later: it is taken process-wide, by serial, and can so only hide a
 * missing order, never invent one. What PyTorch's watchdog has seen done is no reason for other
 * threads to go on, so that counts only from the process's next NCCL operation on: there
 * PyTorch hands over what the watchdog has let go of (ProcessGroupNCCL.cpp, shelvesToUnstash_). It
 * is kept as one position per stream, and dropped from the clocks: their size follows what is in
 * flight, not the length of the job.
 *
 * Sources: CUDA runtime API, "Stream synchronization behavior": work on the legacy default stream
 * waits for all work on the device's blocking streams, and work on these waits for it; streams made
 * with cudaStreamNonBlocking are not part of that; default streams of threads are. "API
 * synchronization behavior": which copies and memsets block the host. Of a stream whose creation
 * was not seen (notice_stream records most) it is not known whether work on the legacy default
 * stream orders it; of an event whose record was not seen, what is ahead of it. Such order is
 * "unknown", up to the work that had been issued by then. */
#ifndef DDPCHECK_ORDER_H
#define DDPCHECK_ORDER_H

#include "analyzer/engine.h"

enum order {
    ORDER_NONE,   /* nothing orders the two: they may run at the same time or in either order */
    ORDER_BEFORE, /* the earlier one is done before */
    ORDER_UNKNOWN /* it depends on something that was not seen */
};

/* Whether what is at `place`, issued earlier, is done before what is put on `stream` next; in
 * the handlers of an operation: before the work in hand. Two calls of one ncclGroup on one
 * communicator have the same position, and nothing orders them. Places stay valid, also when their
 * stream is gone. */
enum order order_before(const struct process *process, const struct place *place,
                        const struct stream_state *stream);
/* The host has seen it done, so all that it issues from now on comes after it. */
bool order_was_seen(const struct process *process, const struct place *place);

/* The stream of a record; for a captured one its counterpart in the capture, NULL if the capture's
 * beginning was not seen. Made known if it is not. 0 or -1 (ENOMEM). */
int order_stream(struct process *process, const struct record *record,
                 struct stream_state **stream);
bool order_is_default(const struct stream_state *stream); /* a legacy default stream */

/* Puts one piece of work on the stream. 0 or -1 (ENOMEM). */
int order_put(struct process *process, struct stream_state *stream, struct place *place);
/* All that comes on each of the streams from now on comes after what stands on any of them up to
 * the position. 0 or -1 (ENOMEM). */
int order_join(struct process *process, struct stream_state *const *stream, uint32_t count,
               uint64_t position);

/* STREAM, EVENT and GRAPH records, kernels' and host functions' LAUNCH, copies: orders them, and
 * leaves in thread->work where the record stands. ENGINE_*. */
int order_feed(struct event *event);
/* notice_stream, notice_host_function. ENGINE_*. */
int order_notice(struct event *event);
/* A call of class WAIT begins: what must be done before it can return goes to thread->waits_for, a
 * copy on its stream. ENGINE_*. */
int order_wait(struct event *event);
/* It has returned. ENGINE_*. */
int order_wait_returned(struct thread *thread);
void order_free(struct process *process);

#endif
