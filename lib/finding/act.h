/* act.h: what ranks did, or are doing, as fields; the words are made from them here alone.
 *
 * Databases, JSON and fingerprints hold the fields, so better words change none of them. */
#ifndef DDPCHECK_ACT_H
#define DDPCHECK_ACT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/text.h"
#include "lib/trace/call.h"

enum did {
#define ACT(did, key, words) DID_##did,
#include "lib/finding/acts.def"
    DID_COUNT
};

/* What a rank waits for, or stands behind. */
enum awaited_kind {
    AWAITED_NOTHING,
    AWAITED_OPERATION,
#define SETUP(kind, ...) AWAITED_##kind,
#include "lib/finding/setups.def"
#undef SETUP
    AWAITED_COMM /* no wait: the communicator itself */
};
enum { COMM_TITLE_BYTES = 96 };
struct awaited {
    enum awaited_kind kind;
    struct called call; /* AWAITED_OPERATION */
    uint64_t comm, number;
    char title[COMM_TITLE_BYTES]; /* of comm, for people; "": it is called by its id */
};

/* Only fields that the words of `did` name (acts.def) are set; the others are 0. */
struct act {
    enum did did;
    struct called call; /* made, not made, or in progress */
    int32_t value;      /* exit status, signal, place in a group */
    int32_t rank;
    uint64_t number;
    struct awaited wait, behind;
    const char *name;  /* of a kernel, tensor, optimizer, exception; a set of ranks; NULL none */
    const char *phase; /* an NVTX range; NULL none */
};

/* "never called": what databases and JSON call it. */
const char *did_key(enum did did);
/* The act of that key; DID_COUNT if this version has none. */
enum did did_of_key(const char *key);
/* The words, with {fields}. */
const char *did_words(enum did did);
/* It says how a process ended. */
bool did_end(enum did did);
/* Others wait because of it: a call is left out, ranks have not come, or they are gone. */
bool did_is_awaited(enum did did);
/* An exception of C++ that nobody caught ended it, by SIGABRT. */
bool act_is_exception(const struct act *act);
/* It says that a rank is in no call. */
bool did_not_call(enum did did);
/* It says for whom a rank waits in a cycle of waits. */
bool did_step(enum did did);

/* Adds "exited with status 1". */
void act_add(struct text *text, const struct act *act);
/* The words, which the caller owns; NULL if memory is short. */
char *act_words(const struct act *act);
/* "operation", "setup", ...: as JSON has it. */
const char *awaited_key(enum awaited_kind kind);
/* AWAITED_NOTHING if there is none of that key. */
enum awaited_kind awaited_of_key(const char *key);
/* Adds "ncclAllReduce(count=4096, float32, sum) #38 of comm 5ae7 (4 ranks)". */
void awaited_add(struct text *text, const struct awaited *awaited);

/* Of the fields, never of the words; without the peer of a send or receive where reported so. */
uint64_t act_hash(const struct act *act, bool without_peer);

/* Their words are the same, but for titles of communicators. */
bool act_equal(const struct act *a, const struct act *b);

/* `to` owns copies of the texts. Returns 0, or -1 when memory is short. */
int act_copy(struct act *to, const struct act *from);
void act_free(struct act *act);

#endif
