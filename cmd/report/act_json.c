/* act_json.c: prints the fields of what ranks did as JSON, so that no reader has to parse words. */
#include "cmd/report/act_json.h"

#include "cmd/json_values.h"
#include "lib/trace/names.h"

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
