/* version_facts.c: what of a finding holds in some versions of NCCL only. */
#include "analyzer/version_facts.h"

#include <stddef.h>

static const struct version_fact facts[] = {
#define FACT(number, since, before, words) {DC##number, since, before, words},
#include "analyzer/version_facts.def"
};

enum { FACTS = sizeof facts / sizeof *facts };

const struct version_fact *version_fact_next(const struct version_fact *before)
{
    const struct version_fact *next = before ? before + 1 : facts;
    return next < facts + FACTS ? next : NULL;
}

const struct version_fact *version_fact_find(enum code code, int nccl_version)
{
    for (int i = 0; i < FACTS && nccl_version > 0; i++)
        if (facts[i].code == code && nccl_version >= facts[i].since &&
            (!facts[i].before || nccl_version < facts[i].before))
            return &facts[i];
    return NULL;
}
