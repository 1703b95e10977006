/* did.c: the table of what ranks can have done (acts.def): keys and words. */
#include <string.h>

#include "lib/finding/act.h"

static const struct {
    const char *key, *words;
} acts[DID_COUNT] = {
#define ACT(did, key, words) [DID_##did] = {key, words},
#include "lib/finding/acts.def"
};

const char *did_key(enum did did)
{
    return did < DID_COUNT ? acts[did].key : acts[DID_OTHER].key;
}

enum did did_of_key(const char *key)
{
    int did = 0;
    while (did < DID_COUNT && strcmp(acts[did].key, key))
        did++;
    return did;
}

const char *did_words(enum did did)
{
    return did < DID_COUNT ? acts[did].words : acts[DID_OTHER].words;
}
