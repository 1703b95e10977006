#include "cmd/export/kineto.h"

#include <stdbool.h>

static const struct {
    unsigned api;
    const char *name;
    bool in_of_all,
        out_of_all; /* count is of one rank's part, and the whole has one of every rank */
} collectives[] = {
    {API_ncclAllReduce, "allreduce", false, false},
    {API_ncclBroadcast, "broadcast", false, false},
    {API_ncclBcast, "broadcast", false, false},
    {API_ncclReduce, "reduce", false, false},
    {API_ncclAllGather, "_allgather_base", false, true},
    {API_ncclReduceScatter, "_reduce_scatter_base", true, false},
    {API_ncclAlltoAll, "all_to_all", true, true},
    {API_ncclGather, "gather", false, true},
    {API_ncclScatter, "scatter", true, false},
    {API_ncclSend, "send", false, false},
    {API_ncclRecv, "recv", false, false},
};

static const char *const dtypes[TYPE_COUNT] = {
    [TYPE_INT8] = "Char",
    [TYPE_UINT8] = "Byte",
    [TYPE_INT32] = "Int",
    [TYPE_UINT32] = "UInt32",
    [TYPE_INT64] = "Long",
    [TYPE_UINT64] = "UInt64",
    [TYPE_FLOAT16] = "Half",
    [TYPE_FLOAT32] = "Float",
    [TYPE_FLOAT64] = "Double",
    [TYPE_BFLOAT16] = "BFloat16",
    [TYPE_FLOAT8E4M3] = "Float8_e4m3fn",
    [TYPE_FLOAT8E5M2] = "Float8_e5m2",
};

enum { COLLECTIVES = sizeof collectives / sizeof collectives[0] };

static int find_kineto_name(unsigned api)
{
    int i = 0;
    while (i < COLLECTIVES && collectives[i].api != api)
        i++;
    return i;
}

const char *kineto_collective(unsigned api)
{
    int i = find_kineto_name(api);
    return i < COLLECTIVES ? collectives[i].name : "unknown";
}

const char *kineto_dtype(unsigned datatype)
{
    return datatype < TYPE_COUNT && dtypes[datatype] ? dtypes[datatype] : "";
}

uint64_t kineto_in(const struct record *call, int nranks)
{
    int i = find_kineto_name(call->api);
    return call->op.count *
           (uint64_t)(i < COLLECTIVES && collectives[i].in_of_all && nranks > 0 ? nranks : 1);
}

uint64_t kineto_out(const struct record *call, int nranks)
{
    int i = find_kineto_name(call->api);
    return call->op.count *
           (uint64_t)(i < COLLECTIVES && collectives[i].out_of_all && nranks > 0 ? nranks : 1);
}
