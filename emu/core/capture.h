/* capture.h: streams whose work is recorded into a graph instead of being done
 * (CUDA programming guide, "Creating a Graph Using Stream Capture").
 *
 * A capture begins at one stream; another stream joins when it waits for an event that was recorded
 * in it, and must have been waited for again when the capture ends. */
#ifndef DDPCHECK_EMU_CAPTURE_H
#define DDPCHECK_EMU_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/core.h"

struct emu_capture_point;
struct emu_graph;
struct emu_node;

/* Modes are cudaStreamCaptureMode. All ints are cudaError_t. */
int emu_capture_begin(struct emu_stream *stream, int mode);
/* The same into a graph of the caller's (NULL: a new one), behind nodes of it, which are copied. */
int emu_capture_begin_in(struct emu_stream *stream, int mode, struct emu_graph *graph,
                         struct emu_node *const *dependencies, size_t count);
/* *graph is the caller's, a live handle; NULL after an error. */
int emu_capture_end(struct emu_stream *stream, struct emu_graph **graph);
/* Records work behind what the stream has recorded so far; takes the arg over if it returns 0. */
int emu_capture_add(struct emu_stream *stream, const char *name, emu_work *run, void *arg,
                    void (*release)(void *));

/* What cudaEventRecord keeps of a captured stream; the caller's. */
int emu_capture_point(struct emu_stream *stream, struct emu_capture_point **point);
void emu_capture_point_free(struct emu_capture_point *point);
/* cudaStreamWaitEvent with such a point. */
int emu_capture_join(struct emu_stream *stream, const struct emu_capture_point *point);

/* cudaErrorStreamCaptureImplicit if using the (legacy) stream would order it with a capture. */
int emu_capture_forbids(const struct emu_stream *stream);
/* cudaErrorStreamCaptureUnsupported if the stream is being captured; that breaks the capture. */
int emu_capture_forbids_wait(struct emu_stream *stream);
/* The same for a call that is not allowed while this thread, or any thread, captures (cudaMalloc,
 * cudaEventQuery): it breaks the captures that forbid it. */
int emu_capture_forbids_call(void);
/* Exchanges the thread's mode (cudaThreadExchangeStreamCaptureMode). */
int emu_capture_exchange_mode(int mode);

struct emu_capture_state {
    int status; /* cudaStreamCaptureStatus */
    uint64_t id;
    struct emu_graph *graph;
    struct emu_node *const *tips; /* valid until the stream is used again */
    size_t tip_count;
};
void emu_capture_state(struct emu_stream *stream, struct emu_capture_state *state);

#endif
