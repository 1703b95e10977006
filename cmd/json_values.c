/* json_values.c: builds the JSON values that all commands have in common. */
#include "cmd/json_values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/trace/cxx_name.h"

json_t *json_of_text(const char *text)
{
    json_t *json = json_string(text);
    if (json)
        return json;
    size_t bytes = strlen(text);
    char *clean = strdup(text);
    for (size_t i = 0; clean && i < bytes; i++)
        if ((unsigned char)clean[i] >= 0x80)
            clean[i] = '?';
    json = clean ? json_string(clean) : NULL;
    free(clean);
    return json;
}

json_t *json_of_address(uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "0x%016" PRIx64, value);
    return json_string(text);
}

static json_t *json_or_null(const char *text)
{
    return *text ? json_of_text(text) : json_null();
}

json_t *json_of_frames(const struct frame *frame, int count)
{
    char name[sizeof frame->function];
    json_t *frames = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(
            frames, json_pack("{s:o, s:o, s:o, s:i, s:o, s:o}", "function",
                              json_or_null(cxx_name(frame[i].function, name, sizeof name)),
                              "symbol", json_or_null(frame[i].address ? frame[i].function : ""),
                              "file", json_or_null(frame[i].file), "line", frame[i].line, "module",
                              json_or_null(frame[i].module), "address",
                              frame[i].address ? json_of_address(frame[i].address) : json_null()));
    return frames;
}

json_t *json_of_count(uint64_t count)
{
    return json_integer((json_int_t)count);
}

json_t *json_of_ranks(const struct rankset *ranks)
{
    char text[4096];
    return json_string(rankset_text(ranks, text, sizeof text));
}

int json_print_line(json_t *object, FILE *out)
{
    bool failed = !object || json_dumpf(object, out, JSON_COMPACT) || putc('\n', out) == EOF;
    json_decref(object);
    return failed ? -1 : 0;
}
