/* event.h: events. A record is a position of a stream with the time when it was passed; an event
 * refers to its latest record; a wait for the event refers to the record that was latest when the
 * wait began. */
#ifndef DDPCHECK_EMU_EVENT_H
#define DDPCHECK_EMU_EVENT_H

#include <stdbool.h>
#include <stdint.h>

struct emu_event;
struct emu_stream;

/* Of the current context. NULL: no memory. The flags are cudaEventCreateWithFlags'. */
struct emu_event *emu_event_create(unsigned flags);
/* NULL unless the handle is a live event. */
struct emu_event *emu_event_find(void *handle);
int emu_event_destroy(struct emu_event *event);
/* All return a cudaError_t. */
int emu_event_record(struct emu_event *event, struct emu_stream *stream);
int emu_event_query(struct emu_event *event);
int emu_event_synchronize(struct emu_event *event);
int emu_event_elapsed(struct emu_event *start, struct emu_event *end, float *milliseconds);
int emu_stream_wait_event(struct emu_stream *stream, struct emu_event *event);

#endif
