/* kineto.c: calls as PyTorch's profiler writes them, for the exports. */
#include "cmd/export/kineto.h"

#include "lib/trace/kind_names.h"

const char *kineto_collective(unsigned api)
{
    const char *name = kind_name_of(KIND_KINETO, api);
    return name ? name : "unknown";
}

const char *kineto_dtype(unsigned datatype)
{
    return datatype_torch_name(datatype);
}

/* The count of one rank's part, or of the parts of all. */
static uint64_t elements_moved(const struct record *call, bool all, int nranks)
{
    return all && nranks > 0 ? call->op.count * (uint64_t)nranks : call->op.count;
}

uint64_t kineto_in(const struct record *call, int nranks)
{
    const struct kind *kind = kind_find(call->api);
    return elements_moved(call, kind && kind_share_is_all(kind->send), nranks);
}

uint64_t kineto_out(const struct record *call, int nranks)
{
    const struct kind *kind = kind_find(call->api);
    return elements_moved(call, kind && kind_share_is_all(kind->recv), nranks);
}
