/* signature.h: what NCCL requires the members of a collective to agree on, and what a call touches.
 */
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
void signature_of(const struct record *record, struct signature *signature);
/* The fields (enum signature_field) in which two members' calls differ and must not; 0: they match.
 */
unsigned signature_differs(const struct signature *a, const struct signature *b);
/* Of everything but the group and PreMulSum's scalar, which need not be known. */
uint64_t signature_hash(const struct signature *signature);
struct called signature_call(const struct signature *signature);
/* "ncclAllReduce(count=4096, float32, sum)". Returns text. */
char *signature_text(const struct signature *signature, char *text, size_t bytes);

#endif
