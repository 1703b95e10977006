/* json_internal.h: what the two halves of the JSON reader share: json_stream.c knows how tokens
 * follow each other, json_text.c reads strings and numbers. */
#ifndef DDPCHECK_JSON_INTERNAL_H
#define DDPCHECK_JSON_INTERNAL_H

#include "lib/import/json_stream.h"

enum { JSON_BUFFER_BYTES = 1 << 16 };

enum json_expect {
    EXPECT_VALUE,
    EXPECT_VALUE_OR_END,
    EXPECT_KEY_OR_END,
    EXPECT_COMMA_OR_END,
    EXPECT_NOTHING
};

struct json_stream {
    json_read *read;
    void *context;
    const char *at, *end;   /* what is left of the buffer */
    uint64_t buffer_offset; /* bytes of text before the buffer */
    uint64_t token_offset;
    char *text; /* of the token */
    size_t length, capacity, text_max;
    enum json_expect expect;
    enum json_token token; /* the last one */
    int depth;
    bool lenient, drained, failed;
    bool skipping; /* texts need not be kept */
    bool is_object[JSON_DEPTH_MAX];
    struct error err;
    char buffer[JSON_BUFFER_BYTES];
};

/* Reads on into the empty buffer and gives its first byte, as json_peek. */
int json_refill(struct json_stream *json);

/* The next byte without taking it; -1 at the end of the text or after a failure to read. */
static inline int json_peek(struct json_stream *json)
{
    return __builtin_expect(json->at < json->end, 1) ? (unsigned char)*json->at : json_refill(json);
}

/* Bytes of text before the next one. */
static inline uint64_t json_position(const struct json_stream *json)
{
    return json->buffer_offset + (uint64_t)(json->at - json->buffer);
}

/* Keeps the first error, with the place before it. Returns -1. */
int json_fail(struct json_stream *json, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Both begin at the token's first byte and leave its text. Return 0 or -1. */
int json_read_string(struct json_stream *json);
int json_read_number(struct json_stream *json, bool *is_integer);

#endif
