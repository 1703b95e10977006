/* signature.h: what NCCL requires the members of a collective to agree on.
 *
 * The shim compares calls with these functions inside the user's process (--guard), too: libc
 * alone. */
#ifndef DDPCHECK_SIGNATURE_H
#define DDPCHECK_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/trace/call.h"
#include "lib/trace/kinds.h"

/* A collective as its peers must see it. Fields that do not count for its kind are set to one
 * value. */
struct signature {
    uint64_t count, scalar;
    uint64_t group_hash;  /* of the calls of its group on this communicator, whatever their order */
    uint32_t group_size;  /* calls of its group on this communicator; 0 outside groups */
    uint32_t group_index; /* its place among them */
    int32_t root;
    uint16_t api;
    uint8_t datatype, redop;
    uint8_t
        unknown; /* enum signature_field: count and root, where their source does not say them */
};

enum signature_field {
    FIELD_KIND = 1,
    FIELD_DATATYPE = 2,
    FIELD_COUNT = 4,
    FIELD_REDOP = 8,
    FIELD_ROOT = 32,
    FIELD_GROUP = 64
};

/* Fills in everything but the group. */
static inline void signature_of(const struct record *record, struct signature *signature)
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
static inline bool signature_group_differs(const struct signature *a, const struct signature *b)
{
    return a->group_size && b->group_size && a->group_index == b->group_index &&
           a->group_size != b->group_size;
}

/* The fields (enum signature_field) in which two members' calls differ and must not; 0: they match.
 * NCCL user guide, "Collective Operations": the same count, datatype, operator and root on every
 * member. */
static inline unsigned signature_differs(const struct signature *a, const struct signature *b)
{
    unsigned fields = signature_group_differs(a, b) ? FIELD_GROUP : 0;
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

/* Of everything but the group and PreMulSum's scalar, which need not be known. */
static inline uint64_t signature_hash(const struct signature *signature)
{
    const uint64_t words[] = {
        signature->count,
        (uint32_t)signature->root,
        (uint64_t)signature->api << 16 | (uint64_t)signature->datatype << 8 |
            (signature->redop == REDOP_UNKNOWN ? REDOP_PREMULSUM : signature->redop),
    };
    return string_id((const char *)words, sizeof words);
}

struct called signature_call(const struct signature *signature);
/* "ncclAllReduce(count=4096, float32, sum)". Returns text. */
char *signature_text(const struct signature *signature, char *text, size_t bytes);

#endif
