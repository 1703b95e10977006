/* table.h: hash tables (uthash) whose additions can fail without ending the process.
 *
 * TABLE_ADD adds `element` (its hash handle must be called hh) under its member `field`; afterwards
 * TABLE_ADDED(element) is false if memory was short, and the element is in no table. */
#ifndef DDPCHECK_TABLE_H
#define DDPCHECK_TABLE_H

#define HASH_NONFATAL_OOM            1
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)
#include <uthash.h>

/* A job of many ranks has many tables of few elements. */
#undef HASH_INITIAL_NUM_BUCKETS
#undef HASH_INITIAL_NUM_BUCKETS_LOG2
#define HASH_INITIAL_NUM_BUCKETS      8U
#define HASH_INITIAL_NUM_BUCKETS_LOG2 3U

#define TABLE_ADD(head, field, element) HASH_ADD(hh, head, field, sizeof((element)->field), element)
#define TABLE_ADDED(element)            ((element)->hh.tbl != NULL)
#define TABLE_FIND(head, key, element)  HASH_FIND(hh, head, key, sizeof *(key), element)

#endif
