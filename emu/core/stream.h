/* stream.h: streams: a FIFO of work each, and a thread that does it.
 *
 * Order between streams is made of positions: "stream S has done its first n pieces of work". An
 * event holds one, the rules of the legacy default stream make them. A piece of work can only wait
 * for positions that were taken when it was pushed, so waits alone never form a cycle.
 *
 * Lock order: stream->lock of a legacy stream, device->streams_lock, stream->lock of another. */
#ifndef DDPCHECK_EMU_STREAM_H
#define DDPCHECK_EMU_STREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu/core.h"

enum { EMU_QUEUE_MAX = 1024 }; /* items pending on a stream before a call waits for room */

struct emu_capture;
struct emu_device;
struct emu_item;
struct emu_node;

struct emu_stream {
    struct emu_device *device;
    const void *context; /* that it was created in (device.h); NULL: whatever is current */
    struct emu_stream *next_of_device; /* guarded by device->streams_lock */
    uint64_t id;
    unsigned flags; /* cudaStreamNonBlocking */
    int priority;
    bool legacy;
    atomic_int references; /* handle, thread and positions */

    pthread_mutex_t lock;    /* guards what follows; atomics may be read without */
    pthread_cond_t work;     /* the thread sleeps here */
    pthread_cond_t progress; /* threads that wait for a position sleep here */
    struct emu_item *first, *last;
    _Atomic uint64_t pushed, done;
    uint64_t behind_legacy; /* ordered behind the legacy stream up to here */
    int waiters;
    bool running, sleeping, closed;
    bool ended;          /* closed, drained and the thread gone: takes no more work */
    atomic_bool dropped; /* the device was reset: nothing runs any more */

    struct emu_capture *_Atomic capture; /* NULL: not being captured */
    struct emu_node **tips;              /* while captured: what the next node comes after */
    size_t tip_count;
};

/* Flags as of cudaStreamCreateWithFlags. Returns NULL if there is no memory. emu_stream_new makes a
 * stream that no handle names; emu_stream_create one that programs can hold. */
struct emu_stream *emu_stream_new_legacy(struct emu_device *device);
struct emu_stream *emu_stream_new(struct emu_device *device, unsigned flags, int priority);
struct emu_stream *emu_stream_create(struct emu_device *device, unsigned flags, int priority);
/* The same in the thread's current context. */
struct emu_stream *emu_stream_create_here(unsigned flags, int priority);
/* The identity of the context in which work on the stream runs. */
const void *emu_stream_context(const struct emu_stream *stream);
/* Gives up a stream; work that is queued is still done. */
int emu_stream_destroy(struct emu_stream *stream);
struct emu_stream *emu_stream_hold(struct emu_stream *stream);
void emu_stream_release(struct emu_stream *stream);

/* Returns 0 once all work pushed so far is done (of a legacy stream: also that of the blocking
 * streams), or the device's error. */
int emu_stream_synchronize(struct emu_stream *stream);
/* 0 or cudaErrorNotReady, or the device's error. */
int emu_stream_query(struct emu_stream *stream);
/* Synchronizes with all streams of a device. */
int emu_stream_synchronize_device(struct emu_device *device);

/* Waits for a position. With `device` not NULL gives up when that device fails. Returns 0 or its
 * error. */
int emu_stream_wait_position(struct emu_stream *stream, uint64_t position,
                             const struct emu_device *device);
/* Appends work with no regard to capture. *position (may be NULL) is where it stands. Fails with
 * cudaErrorInvalidResourceHandle if the stream has ended. */
int emu_stream_append(struct emu_stream *stream, const char *name, emu_work *run, void *arg,
                      void (*release)(void *), uint64_t *position);
/* Appends a wait for a position of another stream. */
int emu_stream_append_wait(struct emu_stream *stream, struct emu_stream *other, uint64_t position);

/* Takes a drained stream out of its device's list. */
void emu_stream_unlink(struct emu_stream *stream);

/* For emu_device_fail and emu_device_reset. The latter returns true if nothing was running. */
void emu_stream_wake_device(struct emu_device *device);
bool emu_stream_abandon_device(struct emu_device *device);

/* order.c: what the legacy default stream's rules put in front of work on `stream`. Called with
 * stream->lock held; the items are to be queued. Returns false if there is no memory. */
bool emu_order_before(struct emu_stream *stream, struct emu_item **first, struct emu_item **last);
/* True while work of a stream that `stream` (legacy) would wait for is not done. */
bool emu_order_pending(struct emu_stream *stream);

/* A piece of queued work. */
struct emu_item {
    struct emu_item *next;
    const char *name;
    emu_work *run;
    void *arg;
    void (*release)(void *);
};
/* A wait for (stream, position) as an item, or NULL. */
struct emu_item *emu_item_wait(struct emu_stream *waiting, struct emu_stream *stream,
                               uint64_t position);

#endif
