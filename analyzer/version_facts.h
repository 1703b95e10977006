/* version_facts.h: what of a finding holds in some versions of NCCL only. */
#ifndef DDPCHECK_VERSION_FACTS_H
#define DDPCHECK_VERSION_FACTS_H

#include "analyzer/code.h"

struct version_fact {
    enum code code;
    int since, before; /* as ncclGetVersion has it; 0: no limit */
    const char *words;
};

/* The fact about this code in this version; NULL: there is none, or the version (0) is unknown. */
const struct version_fact *version_fact_find(enum code code, int nccl_version);
/* All of them, in the table's order: the first for NULL, NULL after the last. */
const struct version_fact *version_fact_next(const struct version_fact *before);

#endif
