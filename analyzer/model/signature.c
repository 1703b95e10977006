/* signature.c: how the calls of a collective differ, by what NCCL requires (NCCL user guide,
 * "Collective Operations": the same count, datatype, operator and root on every member). */
#include "analyzer/model/signature.h"

#include <string.h>

#include "lib/base/text.h"
#include "lib/trace/names.h"

void signature_of(const struct record *record, struct signature *signature)
{
    const struct kind *kind = kind_find(record->api);
    *signature = (struct signature){
        .api = record->api,
        .count = record->op.count,
        .datatype = record->op.datatype,
        .redop = REDOP_NONE,
        .root = -1,
    };
    if (record->op.flags & RECORD_OP_NO_COUNT)
        signature->unknown |= FIELD_COUNT;
    if (record->op.flags & RECORD_OP_NO_ROOT)
        signature->unknown |= FIELD_ROOT;
    if (!kind)
        return;
    signature->api = kind->same_as;
    if (kind->flags & (KIND_ROOTED | KIND_TO_PEER))
        signature->root = record->op.root;
    if (kind->flags & KIND_REDUCES) {
        signature->redop = record->op.redop;
        if (record->op.redop == REDOP_PREMULSUM)
            signature->scalar = record->op.scalar;
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
        /* Of a handle that the shim does not know nothing can be said here (invalid_call.c). The
         * scalar of PreMulSum is applied to each rank's own input: it may differ (nccl.h,
         * ncclRedOpCreatePreMulSum). */
        bool comparable = a->redop != REDOP_UNKNOWN && b->redop != REDOP_UNKNOWN;
        if (comparable && a->redop != b->redop)
            fields |= FIELD_REDOP;
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
    if (signature->unknown & FIELD_COUNT)
        record.op.flags |= RECORD_OP_NO_COUNT;
    if (signature->unknown & FIELD_ROOT)
        record.op.flags |= RECORD_OP_NO_ROOT;
    return call_of_record(&record);
}

char *signature_text(const struct signature *signature, char *text, size_t bytes)
{
    const struct called call = signature_call(signature);
    return call_text(&call, text, bytes);
}
