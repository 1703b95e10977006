/* store_block.c: the table operation_block: where each 1,024 collectives of a member begin, and
 * their hash. */
#include <stdlib.h>

/* Else uthash ends the process when memory is short. */
#define HASH_NONFATAL_OOM            1
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)
#include <uthash.h>

#include "lib/trace/kinds.h"
#include "lib/trace/store_internal.h"

enum { BLOCK_OPERATIONS = 1024, BLOCKS_MAX = 1 << 16 }; /* more members of one host are noise */

struct block_key {
    uint64_t comm;
    int64_t rank;
};

/* The block that a member is in. */
struct store_block {
    struct block_key key;
    uint64_t next; /* number of its next collective */
    uint64_t hash; /* of those since the block began; 0 if some were not seen */
    UT_hash_handle hh;
};

/* NULL when memory is short: then the hash of these operations is not known. */
static struct store_block *block_of(struct store *store, const struct record *record)
{
    struct block_key key = {record->op.comm, record->op.rank};
    struct store_block *block;
    HASH_FIND(hh, store->blocks, &key, sizeof key, block);
    if (block)
        return block;
    if (HASH_COUNT(store->blocks) >= BLOCKS_MAX)
        store_block_free(store);
    if (!(block = calloc(1, sizeof *block)))
        return NULL;
    block->key = key;
    HASH_ADD(hh, store->blocks, key, sizeof key, block);
    if (block->hh.tbl)
        return block;
    free(block);
    return NULL;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* What must be alike on all ranks. The two names of Broadcast are one. */
static uint64_t hash_record(uint64_t hash, const struct record *record)
{
    uint64_t api = kind_same_as(record->api);
    hash = mix(mix(hash, api), record->op.count);
    hash = mix(hash, (uint64_t)record->op.datatype | (uint64_t)record->op.redop << 8 |
                         (uint64_t)(uint32_t)record->op.root << 32);
    hash = mix(hash, record->op.scalar);
    return hash ? hash : 1;
}

static int begin(struct store *store, int process, const struct record *record, sqlite3_int64 seq,
                 struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_BLOCK, err);
    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)record->op.comm);
    sqlite3_bind_int(statement, 2, record->op.rank);
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)(record->op.number / BLOCK_OPERATIONS));
    sqlite3_bind_int(statement, 4, process);
    sqlite3_bind_int64(statement, 5, seq);
    return store_run(store, statement, err);
}

static int end(struct store *store, const struct store_block *block, uint64_t number,
               struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_BLOCK_HASH, err);
    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)block->hash);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)block->key.comm);
    sqlite3_bind_int64(statement, 3, block->key.rank);
    sqlite3_bind_int64(statement, 4, (sqlite3_int64)(number / BLOCK_OPERATIONS));
    return store_run(store, statement, err);
}

int store_block_note(struct store *store, int process, const struct record *record,
                     sqlite3_int64 seq, struct error *err)
{
    uint64_t number = record->op.number;
    bool first = number % BLOCK_OPERATIONS == 0,
         last = number % BLOCK_OPERATIONS == BLOCK_OPERATIONS - 1;
    struct store_block *block = block_of(store, record);
    if (first && begin(store, process, record, seq, err) < 0)
        return -1;
    if (!block)
        return 0;
    if (first)
        block->hash = hash_record(1, record);
    else
        block->hash = number == block->next && block->hash ? hash_record(block->hash, record) : 0;
    block->next = number + 1;
    return last && block->hash ? end(store, block, number, err) : 0;
}

void store_block_undone(struct store *store)
{
    for (struct store_block *block = store->blocks; block; block = block->hh.next)
        block->hash = 0;
}

void store_block_free(struct store *store)
{
    struct store_block *block, *next;
    HASH_ITER(hh, store->blocks, block, next) {
        HASH_DEL(store->blocks, block);
        free(block);
    }
}
