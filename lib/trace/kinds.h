/* kinds.h: what each kind of operation moves, from kinds.def and datatypes.def.
 *
 * All functions are inline: the shim uses them inside the user's process and needs libc alone. */
#ifndef DDPCHECK_KINDS_H
#define DDPCHECK_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/trace/record.h"

/* How many elements a buffer holds: `count` (ONE), or `count` for each rank (ALL). */
enum kind_share { KIND_NOTHING, KIND_ONE, KIND_ALL, KIND_ONE_AT_ROOT, KIND_ALL_AT_ROOT };

/* Where the buffers lie when the call works in place: at one address, or one is the caller's part
 * of the other (the root's, in a rooted kind). */
enum kind_in_place {
    KIND_IN_PLACE_NEVER,
    KIND_IN_PLACE_SAME,
    KIND_IN_PLACE_SEND_IN_RECV,
    KIND_IN_PLACE_RECV_IN_SEND
};

enum kind_flag {
    KIND_REDUCES = 1,   /* it has a reduction operator */
    KIND_ROOTED = 2,    /* op.root is the root */
    KIND_TO_PEER = 4,   /* op.root is the peer */
    KIND_ALIKE = 8,     /* all ranks hold the same bytes afterwards */
    KIND_BUCKETS = 16,  /* programs cut one piece of work into several of these, where they like */
    KIND_ONE_SIDED = 32 /* a signal, for which only ncclWaitSignal waits */
};

struct kind {
    uint16_t api;     /* 0: not an operation */
    uint16_t same_as; /* the call that peers may make instead */
    uint8_t send, recv, in_place, flags;
};

/* NULL: the call is not an operation. */
static inline const struct kind *kind_find(unsigned api)
{
    static const struct kind kinds[] = {
#define KIND(api, same_as, send, recv, in_place, flags)                                          \
    [API_##api] = {API_##api, API_##same_as, KIND_##send, KIND_##recv, KIND_IN_PLACE_##in_place, \
                   flags},
#include "lib/trace/kinds.def"
    };
    return api < sizeof kinds / sizeof *kinds && kinds[api].api ? &kinds[api] : NULL;
}

/* Any of `flags` (enum kind_flag). */
static inline bool kind_has(unsigned api, unsigned flags)
{
    const struct kind *kind = kind_find(api);
    return kind && kind->flags & flags;
}

/* Which side of its pair a call to a peer is. */
static inline bool kind_receives(unsigned api)
{
    return api == API_ncclRecv || api == API_ncclWaitSignal;
}

/* The call under the name that all its peers may use: ncclBcast is ncclBroadcast in place. */
static inline unsigned kind_same_as(unsigned api)
{
    const struct kind *kind = kind_find(api);
    return kind ? kind->same_as : api;
}

/* The call by the name that NCCL's profiler, log and RAS give it ("AllReduce"; some versions write
 * "AllToAll"), of `bytes` characters. API_NONE if there is none: one-sided calls have more
 * arguments than these say. */
static inline uint16_t kind_of_nccl(const char *name, size_t bytes)
{
    static const struct {
        const char *name;
        uint16_t api;
    } names[] = {
#define KIND(api, same_as, send, recv, in_place, flags) {#api, API_##api},
#include "lib/trace/kinds.def"
        {"ncclAllToAll", API_ncclAlltoAll},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].name + 4) == bytes && !memcmp(names[i].name + 4, name, bytes) &&
            !kind_has(names[i].api, KIND_ONE_SIDED))
            return names[i].api;
    return API_NONE;
}

/* A buffer of it is for all ranks, here or at the root. */
static inline bool kind_share_is_all(enum kind_share share)
{
    return share == KIND_ALL || share == KIND_ALL_AT_ROOT;
}

static inline bool kind_spans_ranks(const struct kind *kind)
{
    return kind_share_is_all((enum kind_share)kind->send) ||
           kind_share_is_all((enum kind_share)kind->recv);
}

/* Of one rank's buffer; `each`: of one rank's part. UINT64_MAX if that is more than fits. */
static inline uint64_t kind_share_bytes(enum kind_share share, uint64_t each, bool at_root,
                                        int nranks)
{
    uint64_t all = each;
    if (share == KIND_NOTHING ||
        ((share == KIND_ONE_AT_ROOT || share == KIND_ALL_AT_ROOT) && !at_root))
        return 0;
    if (kind_share_is_all(share) &&
        __builtin_mul_overflow(each, nranks > 0 ? (uint64_t)nranks : 0, &all))
        return UINT64_MAX;
    return all;
}

enum { DATATYPE_BYTES_MAX = 8 };

/* 0: not a datatype of NCCL's. */
static inline size_t datatype_bytes(unsigned datatype)
{
    static const uint8_t bytes[TYPE_COUNT] = {
#define DATATYPE(number, name, bytes, nccl, torch) [TYPE_##number] = bytes,
#include "lib/trace/datatypes.def"
#undef DATATYPE
    };
    return datatype < TYPE_COUNT ? bytes[datatype] : 0;
}

/* Bytes that an operation reads at sendbuff and writes at recvbuff on its rank; 0: not used. */
struct op_extent {
    uint64_t send_bytes, recv_bytes;
};

/* nranks below 1: not known. A count that overflows gives UINT64_MAX. False if the call or its
 * datatype is not known. */
static inline bool op_extent_of(const struct record *record, int nranks, struct op_extent *extent)
{
    const struct kind *kind = kind_find(record->api);
    uint64_t each;
    size_t element = datatype_bytes(record->op.datatype);
    if (!kind || !element)
        return false;
    if (__builtin_mul_overflow(record->op.count, (uint64_t)element, &each))
        each = UINT64_MAX;
    int parts = nranks > 0 ? nranks : 1; /* at least its own */
    bool at_root = record->op.rank == record->op.root;
    extent->send_bytes = kind_share_bytes((enum kind_share)kind->send, each, at_root, parts);
    extent->recv_bytes = kind_share_bytes((enum kind_share)kind->recv, each, at_root, parts);
    return true;
}

#endif
