/* copy.h: copies and fills as work on a stream, with the host waiting where CUDA documents that it
 * does. */
#ifndef DDPCHECK_EMU_COPY_H
#define DDPCHECK_EMU_COPY_H

#include <stdbool.h>
#include <stddef.h>

struct emu_stream;

/* `depth` slices of `height` rows of `width` bytes. A plain copy has height and depth 1. */
struct emu_copy {
    void *to;
    const void *from;
    size_t width, height, depth;
    size_t to_pitch, from_pitch; /* bytes from row to row */
    size_t to_slice, from_slice; /* bytes from slice to slice */
    int kind;                    /* cudaMemcpyKind */
    bool peer;                   /* between devices by name: staged, needs no peer access */
};

struct emu_fill {
    void *to;
    size_t width, height, pitch; /* bytes */
    unsigned value;
    unsigned element_bytes; /* 1, 2 or 4 */
};

/* `async`: the call's name ends in Async. `name` is the call's name. Return a cudaError_t. */
int emu_copy(struct emu_stream *stream, const struct emu_copy *copy, bool async, const char *name);
int emu_fill(struct emu_stream *stream, const struct emu_fill *fill, bool async, const char *name);
/* cudaMemcpyPeer, in order with everything on the devices that take part (peer_copy.c). */
int emu_copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes);
struct emu_copy emu_copy_plain(void *to, const void *from, size_t bytes, int kind);

#endif
