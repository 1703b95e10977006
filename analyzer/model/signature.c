#include "analyzer/model/signature.h"

#include <string.h>

#include "lib/base/text.h"
#include "lib/trace/names.h"

enum share { NOTHING, ONE, ALL, ONE_AT_ROOT, ALL_AT_ROOT };

/* nccl.h 2.28 and the NCCL user guide, "Collective Operations": every member calls with the same
 * count and datatype; a reduction needs the same operator; a rooted call the same root. ONE and
 * ALL: the buffer holds count, or nranks * count, elements. ncclBcast is ncclBroadcast in place. */
static const struct kind_rule {
    uint16_t api, same_as;
    bool redop, root;
    uint8_t send, recv;
} kind_rules[] = {
    {API_ncclAllReduce, API_ncclAllReduce, true, false, ONE, ONE},
    {API_ncclBroadcast, API_ncclBroadcast, false, true, ONE_AT_ROOT, ONE},
    {API_ncclBcast, API_ncclBroadcast, false, true, ONE_AT_ROOT, ONE},
    {API_ncclReduce, API_ncclReduce, true, true, ONE, ONE_AT_ROOT},
    {API_ncclAllGather, API_ncclAllGather, false, false, ONE, ALL},
    {API_ncclReduceScatter, API_ncclReduceScatter, true, false, ALL, ONE},
    {API_ncclAlltoAll, API_ncclAlltoAll, false, false, ALL, ALL},
    {API_ncclGather, API_ncclGather, false, true, ONE, ALL_AT_ROOT},
    {API_ncclScatter, API_ncclScatter, false, true, ALL_AT_ROOT, ONE},
    {API_ncclSend, API_ncclSend, false, true, ONE, NOTHING},
    {API_ncclRecv, API_ncclRecv, false, true, NOTHING, ONE},
};

static const struct kind_rule *rule_of(unsigned api)
{
    for (size_t i = 0; i < sizeof kind_rules / sizeof *kind_rules; i++)
        if (kind_rules[i].api == api)
            return &kind_rules[i];
    return NULL;
}

void signature_of(const struct record *record, struct signature *signature)
{
    const struct kind_rule *rule = rule_of(record->api);
    *signature = (struct signature){
        .api = record->api,
        .count = record->op.count,
        .datatype = record->op.datatype,
        .redop = REDOP_NONE,
        .root = -1,
        .unknown = (record->op.flags & RECORD_OP_NO_COUNT ? FIELD_COUNT : 0) |
                   (record->op.flags & RECORD_OP_NO_ROOT ? FIELD_ROOT : 0),
    };
    if (!rule)
        return;
    signature->api = rule->same_as;
    if (rule->root)
        signature->root = record->op.root;
    if (rule->redop) {
        signature->redop = record->op.redop;
        if (record->op.redop == REDOP_PREMULSUM)
            signature->scalar = record->op.scalar;
        signature->scalar_on_device = record->op.flags & RECORD_OP_SCALAR_ON_DEVICE;
    }
}

/* A group is compared only with a group that begins at the same operation: NCCL aggregates the
 * calls of a group into one launch (user guide, "Group Calls", "Aggregated Operations"), and does
 * not say that one rank may group what another issues singly, nor that it may not. That difference
 * is left alone. */
static bool group_differs(const struct signature *a, const struct signature *b)
{
    return a->group_size && b->group_size && a->group_index == b->group_index &&
           a->group_size != b->group_size;
}

unsigned signature_differs(const struct signature *a, const struct signature *b)
{
    unsigned fields = group_differs(a, b) ? FIELD_GROUP : 0;
    if (a->api != b->api) {
        fields |= FIELD_KIND;
    } else {
        if (a->datatype != b->datatype && a->datatype != TYPE_NONE && b->datatype != TYPE_NONE)
            fields |= FIELD_DATATYPE;
        if (a->count != b->count && !((a->unknown | b->unknown) & FIELD_COUNT))
            fields |= FIELD_COUNT;
        /* Of a handle that the shim does not know nothing can be said here (dc111_invalid.c). */
        bool comparable = a->redop != REDOP_UNKNOWN && b->redop != REDOP_UNKNOWN;
        if (comparable && a->redop != b->redop)
            fields |= FIELD_REDOP;
        else if (comparable && a->scalar != b->scalar && !a->scalar_on_device &&
                 !b->scalar_on_device)
            fields |= FIELD_SCALAR;
        if (a->root != b->root && !((a->unknown | b->unknown) & FIELD_ROOT))
            fields |= FIELD_ROOT;
    }
    /* The same calls in another order are a difference of the group, not of its calls. */
    if (fields && a->group_size && b->group_size == a->group_size &&
        a->group_index == b->group_index && a->group_hash == b->group_hash)
        fields |= FIELD_GROUP;
    return fields;
}

uint64_t signature_hash(const struct signature *signature)
{
    const uint64_t words[] = {
        signature->count,
        (uint32_t)signature->root,
        (uint64_t)signature->api << 16 | (uint64_t)signature->datatype << 8 |
            (signature->redop == REDOP_UNKNOWN ? REDOP_PREMULSUM : signature->redop),
    };
    return hash_bytes(HASH_START, words, sizeof words);
}

struct called signature_call(const struct signature *signature)
{
    struct record record = {.api = signature->api, .phase = RECORD_ENTER};
    record.op.count = signature->count;
    record.op.datatype = signature->datatype;
    record.op.redop = signature->redop;
    record.op.root = signature->root;
    record.op.scalar = signature->scalar;
    record.op.flags = (signature->unknown & FIELD_COUNT ? RECORD_OP_NO_COUNT : 0) |
                      (signature->unknown & FIELD_ROOT ? RECORD_OP_NO_ROOT : 0);
    return call_of_record(&record);
}

char *signature_text(const struct signature *signature, char *text, size_t bytes)
{
    const struct called call = signature_call(signature);
    return call_text(&call, text, bytes);
}

static uint64_t share_bytes(enum share share, uint64_t bytes, bool at_root, int nranks)
{
    if (share == NOTHING || ((share == ONE_AT_ROOT || share == ALL_AT_ROOT) && !at_root))
        return 0;
    uint64_t all = bytes;
    if ((share == ALL || share == ALL_AT_ROOT) &&
        __builtin_mul_overflow(bytes, (uint64_t)nranks, &all))
        return UINT64_MAX;
    return all;
}

bool op_extent_of(const struct record *record, int nranks, struct op_extent *extent)
{
    const struct kind_rule *rule = rule_of(record->api);
    size_t element = datatype_bytes(record->op.datatype);
    if (!rule || !element)
        return false;
    bool needs_all = rule->send == ALL || rule->send == ALL_AT_ROOT || rule->recv == ALL ||
                     rule->recv == ALL_AT_ROOT;
    if (needs_all && nranks < 1)
        nranks = 1; /* not known: at least its own share */
    uint64_t bytes;
    if (__builtin_mul_overflow(record->op.count, (uint64_t)element, &bytes))
        bytes = UINT64_MAX;
    bool at_root = record->op.rank == record->op.root;
    extent->send_bytes = share_bytes(rule->send, bytes, at_root, nranks);
    extent->recv_bytes = share_bytes(rule->recv, bytes, at_root, nranks);
    return true;
}
