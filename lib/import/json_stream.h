/* json_stream.h: reads JSON of any size token by token, in the memory of one token.
 *
 * A pull parser: json_next() reads the next token, json_skip() passes over what nobody wants.
 * jansson builds the whole document first, which for a profiler's trace of gigabytes is several
 * times its size. Limits: JSON_DEPTH_MAX levels, and a token's text of `text_max` bytes; what is
 * skipped may be longer. Integers keep their 64 bits, and fractions can be had as scaled integers,
 * because a double does not hold nanoseconds since 1970.
 *
 *     while ((token = json_next(json)) == TOKEN_KEY)
 *         if (!strcmp(json_text(json, NULL), "ts")) { json_next(json); json_scaled(json, 3,
 * &time_ns); } else json_skip(json);
 */
#ifndef DDPCHECK_JSON_STREAM_H
#define DDPCHECK_JSON_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

enum { JSON_DEPTH_MAX = 512, JSON_NUMBER_MAX = 128 };

enum json_token {
    TOKEN_ERROR = -1, /* json_error() says what and where; every later call says so again */
    TOKEN_END,        /* the document is over */
    TOKEN_OBJECT,
    TOKEN_OBJECT_END,
    TOKEN_ARRAY,
    TOKEN_ARRAY_END,
    TOKEN_KEY,
    TOKEN_STRING,
    TOKEN_INTEGER,
    TOKEN_FRACTION, /* FRACTION has a point or an exponent */
    TOKEN_TRUE,
    TOKEN_FALSE,
    TOKEN_NULL
};

/* Gives up to `bytes` bytes of the text: how many, 0 at its end, -1 with err. */
typedef int64_t json_read(void *context, void *buffer, size_t bytes, struct error *err);

struct json_options {
    size_t text_max; /* bytes of a key or string; 0: 1 MiB */
    /* Takes what programs write although JSON (RFC 8259) has no such thing: NaN and Infinity (as
     * null), bytes that are no UTF-8 (as U+FFFD), unknown escapes and bare control characters (as
     * they stand). */
    bool lenient;
};

struct json_stream;

/* `read` is called with `context`, which stays the caller's. Returns 0, or -1 with err (memory). */
int json_open(struct json_stream **json, const struct json_options *options, json_read *read,
              void *context, struct error *err);
void json_close(struct json_stream *json); /* NULL is allowed */

enum json_token json_next(struct json_stream *json);
/* After TOKEN_KEY: passes over its value. After TOKEN_OBJECT or TOKEN_ARRAY: to its end. After
 * anything else: nothing. What is skipped is checked like everything else. Returns 0, or -1
 * (json_error). */
int json_skip(struct json_stream *json);

/* The text of a key, string or number, without quotes and escapes, NUL-ended; valid until the next
 * call. A string may hold NUL bytes itself: `length`, if not NULL, is all of it. */
const char *json_text(const struct json_stream *json, size_t *length);
/* The value of a number, or of a string that holds one. False if it is none, or does not fit. */
bool json_int64(const struct json_stream *json, int64_t *value);
/* The number times 10^digits, rounded to the nearest integer from its decimal digits: "1.0005" with
 * 3 is 1001. False if it is none or does not fit. */
bool json_scaled(const struct json_stream *json, int digits, int64_t *value);

int json_depth(const struct json_stream *json);         /* open objects and arrays */
uint64_t json_offset(const struct json_stream *json);   /* bytes of text before the last token */
const char *json_error(const struct json_stream *json); /* "byte 1042: ...", "" if there is none */

#endif
