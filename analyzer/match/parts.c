/* parts.c: numbers the allocations of a process, those of one size on one device by themselves. */
#include "analyzer/match/parts.h"

#include <stdlib.h>

/* Else uthash ends the process when memory is short. */
#define HASH_NONFATAL_OOM            1
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)
#include <uthash.h>

#include "analyzer/model/memory.h"
#include "lib/base/hash.h"
#include "lib/trace/kinds.h"

enum { ALLOCATIONS_MAX = 1 << 16 }; /* after that many the next ones have no name */

struct parts_size {
    uint64_t key; /* of size and device */
    uint64_t count;
    UT_hash_handle hh;
};

struct parts_birth {
    uint64_t base;
    uint64_t name;
    UT_hash_handle hh;
};

static bool makes_memory(const struct record *record)
{
    switch (record->api) {
    case API_cudaMalloc:
    case API_cudaMallocAsync:
    case API_cudaMallocHost:
    case API_cudaMallocManaged:
    case API_cudaMallocPitch:
    case API_cudaMallocFromPoolAsync:
    case API_cudaMalloc3D:
        return record->phase == RECORD_POINT && record->result == 0 && record->memory.pointer;
    default:
        return false;
    }
}

static struct parts_size *find_part_size(struct memory_parts *parts, uint64_t key)
{
    struct parts_size *size;
    HASH_FIND(hh, parts->sizes, &key, sizeof key, size);
    if (size || !(size = calloc(1, sizeof *size)))
        return size;
    size->key = key;
    HASH_ADD(hh, parts->sizes, key, sizeof key, size);
    if (size->hh.tbl)
        return size;
    free(size);
    return NULL;
}

static struct parts_birth *find_birth(struct memory_parts *parts, uint64_t base)
{
    struct parts_birth *birth;
    HASH_FIND(hh, parts->births, &base, sizeof base, birth);
    if (birth || !(birth = calloc(1, sizeof *birth)))
        return birth;
    birth->base = base;
    HASH_ADD(hh, parts->births, base, sizeof base, birth);
    if (birth->hh.tbl)
        return birth;
    free(birth);
    return NULL;
}

int parts_note(struct memory_parts *parts, const struct record *record)
{
    if (!makes_memory(record) || HASH_COUNT(parts->births) >= ALLOCATIONS_MAX ||
        HASH_COUNT(parts->sizes) >= ALLOCATIONS_MAX)
        return 0;
    uint64_t key = hash_word(hash_word(0, record->memory.bytes), (uint64_t)record->device);
    struct parts_size *size = find_part_size(parts, key);
    struct parts_birth *birth = size ? find_birth(parts, record->memory.pointer) : NULL;
    if (!birth)
        return -1;
    birth->name = hash_word(hash_word(0, record->memory.bytes), size->count++);
    return 0;
}

uint64_t parts_name(const struct memory_parts *parts, const struct operation *operation)
{
    const struct record *record = &operation->record;
    bool gathers = kind_same_as(record->api) == API_ncclAllGather;
    uint64_t pointer = gathers || !record->op.sendbuff ? record->op.recvbuff : record->op.sendbuff;
    const struct allocation *allocation = memory_find(operation->process, pointer);
    struct parts_birth *birth = NULL;
    if (allocation)
        HASH_FIND(hh, parts->births, &allocation->base, sizeof allocation->base, birth);
    uint64_t name = birth ? hash_word(birth->name, pointer - birth->base) : 0;
    return birth && !name ? 1 : name;
}

void parts_free(struct memory_parts *parts)
{
    struct parts_size *size, *next_size;
    struct parts_birth *birth, *next_birth;
    HASH_ITER(hh, parts->sizes, size, next_size) {
        HASH_DEL(parts->sizes, size);
        free(size);
    }
    HASH_ITER(hh, parts->births, birth, next_birth) {
        HASH_DEL(parts->births, birth);
        free(birth);
    }
}
