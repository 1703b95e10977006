/* protobuf.h: writes protobuf's wire format: fields appended to a buffer, a message within a
 * message as bytes.
 *
 *     struct protobuf packet = {0}, event = {0};
 *     protobuf_number(&event, 9, 1);            // TrackEvent.type
 *     protobuf_number(&packet, 8, time_ns);     // TracePacket.timestamp
 *     protobuf_message(&packet, 11, &event);    // TracePacket.track_event; `event` is empty again
 *     protobuf_write(&packet, 1, out);          // Trace.packet
 */
#ifndef DDPCHECK_EXPORT_PROTOBUF_H
#define DDPCHECK_EXPORT_PROTOBUF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Zero-initialised is an empty message. Kept for the next message, so that a stream of them
 * allocates once. */
struct protobuf {
    uint8_t *byte;
    size_t bytes, space;
    bool failed; /* memory was short: what is here is not all */
};

void protobuf_free(struct protobuf *message);

/* Fields: varint (integers, enums, bools), fixed64, string (what is no UTF-8 becomes '?'), a
 * message, which is emptied. */
void protobuf_number(struct protobuf *message, int field, uint64_t value);
void protobuf_fixed64(struct protobuf *message, int field, uint64_t value);
void protobuf_text(struct protobuf *message, int field, const char *text);
void protobuf_message(struct protobuf *message, int field, struct protobuf *inner);

/* Writes the message as a field of the file's message, and empties it. */
void protobuf_write(struct protobuf *message, int field, FILE *out);

#endif
