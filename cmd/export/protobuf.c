/* protobuf.c: encodes protobuf's wire format. */
#include "cmd/export/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/export/text.h"
#include "lib/base/array.h"

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

enum { VARINT_BYTES = 10 };

static void append_bytes(struct protobuf *message, const void *bytes, size_t count)
{
    if (!ARRAY_RESERVE(message->byte, message->space, message->bytes + count)) {
        message->failed = true;
        return;
    }
    if (count)
        memcpy(message->byte + message->bytes, bytes, count);
    message->bytes += count;
}

static size_t encode(uint64_t value, uint8_t bytes[VARINT_BYTES])
{
    size_t count = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    return count;
}

static void varint(struct protobuf *message, uint64_t value)
{
    uint8_t bytes[VARINT_BYTES];
    append_bytes(message, bytes, encode(value, bytes));
}

static void tag(struct protobuf *message, int field, enum wire wire)
{
    varint(message, (uint64_t)field << 3 | wire);
}

void protobuf_free(struct protobuf *message)
{
    free(message->byte);
    *message = (struct protobuf){0};
}

void protobuf_number(struct protobuf *message, int field, uint64_t value)
{
    tag(message, field, WIRE_VARINT);
    varint(message, value);
}

void protobuf_fixed64(struct protobuf *message, int field, uint64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    tag(message, field, WIRE_FIXED64);
    append_bytes(message, bytes, sizeof bytes);
}

/* Decoders refuse strings that are not UTF-8. */
void protobuf_text(struct protobuf *message, int field, const char *text)
{
    tag(message, field, WIRE_BYTES);
    varint(message, strlen(text));
    while (*text) {
        size_t length = utf8_length(text);
        append_bytes(message, length ? text : "?", length ? length : 1);
        text += length ? length : 1;
    }
}

void protobuf_message(struct protobuf *message, int field, struct protobuf *inner)
{
    tag(message, field, WIRE_BYTES);
    varint(message, inner->bytes);
    append_bytes(message, inner->byte, inner->bytes);
    message->failed |= inner->failed;
    inner->bytes = 0;
    inner->failed = false;
}

void protobuf_write(struct protobuf *message, int field, FILE *out)
{
    uint8_t head[2 * VARINT_BYTES];
    size_t bytes = encode((uint64_t)field << 3 | WIRE_BYTES, head);
    bytes += encode(message->bytes, head + bytes);
    fwrite(head, 1, bytes, out);
    fwrite(message->byte, 1, message->bytes, out);
    message->bytes = 0;
}
