/* host_call.h: a host function as work on a stream. It may not call CUDA. */
#ifndef DDPCHECK_EMU_HOST_CALL_H
#define DDPCHECK_EMU_HOST_CALL_H

struct emu_stream;

/* Either `function`, or `callback`, which is also given `stream` as the program named it and an
 * error of 0. */
struct emu_host_call {
    void (*function)(void *data);
    void (*callback)(void *stream, int error, void *data);
    void *stream, *data;
};

/* Returns a cudaError_t. */
int emu_host_call(struct emu_stream *stream, const struct emu_host_call *call, const char *name);

#endif
