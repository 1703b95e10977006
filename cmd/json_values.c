/* json_values.c: builds the JSON values that all commands have in common, and those of what ranks
 * did. */
#include "cmd/json_values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/printable.h"
#include "lib/trace/cxx_name.h"
#include "lib/trace/names.h"

json_t *json_of_text(const char *text)
{
    char *clean = strdup(text);
    if (clean)
        printable_clean_lines(clean);
    json_t *json = clean ? json_string(clean) : NULL;
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

static json_t *call_json(const struct called *call)
{
    unsigned has = call->arguments;
    if (!call->api)
        return json_null();
    json_t *json = json_pack("{s:o}", "function", json_of_text(call_name(call)));
    if (has & ARGUMENT_COUNT)
        json_object_set_new(json, "count", json_of_count(call->count));
    if (has & ARGUMENT_DATATYPE)
        json_object_set_new(json, "datatype", json_string(datatype_name(call->datatype)));
    if (has & ARGUMENT_REDOP)
        json_object_set_new(json, "redop", json_string(redop_name(call->redop)));
    if (has & ARGUMENT_ROOT)
        json_object_set_new(json, "root", json_integer(call->peer));
    if (has & ARGUMENT_PEER)
        json_object_set_new(json, "peer", json_integer(call->peer));
    if (has & ARGUMENT_BYTES)
        json_object_set_new(json, "bytes", json_of_count(call->bytes));
    return json;
}

static json_t *awaited_json(const struct awaited *awaited)
{
    if (awaited->kind == AWAITED_NOTHING)
        return json_null();
    return json_pack("{s:s, s:o, s:o, s:o}", "kind", awaited_key(awaited->kind), "call",
                     call_json(&awaited->call), "comm", json_of_address(awaited->comm), "number",
                     json_of_count(awaited->number));
}

json_t *json_of_act(const struct act *act)
{
    bool killed = act->did == DID_KILLED || act->did == DID_KILLED_FOR_MEMORY;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "did", did_key(act->did), "call",
                     call_json(&act->call), "status",
                     act->did == DID_EXITED ? json_integer(act->value) : json_null(), "signal",
                     killed ? json_integer(act->value) : json_null(), "waits_for",
                     awaited_json(&act->wait), "behind", awaited_json(&act->behind));
}
