/* version_facts.c: what of a finding holds in some versions of NCCL or PyTorch only. */
#include "analyzer/version_facts.h"

#include <stdio.h>

static const struct version_fact facts[] = {
#define FACT(number, library, since, before, words, source) \
    {DC##number, LIBRARY_##library, since, before, words, source},
#include "analyzer/version_facts.def"
};

enum { FACTS = sizeof facts / sizeof *facts };

const struct version_fact *version_fact_next(const struct version_fact *before)
{
    const struct version_fact *next = before ? before + 1 : facts;
    return next < facts + FACTS ? next : NULL;
}

const struct version_fact *version_fact_of_code(enum code code, const struct version_fact *before)
{
    const struct version_fact *fact = version_fact_next(before);
    while (fact && fact->code != code)
        fact = version_fact_next(fact);
    return fact;
}

const char *version_library_name(enum library library)
{
    return library == LIBRARY_NCCL ? "NCCL" : "PyTorch";
}

const struct version_fact *version_fact_find(enum code code, const int versions[LIBRARIES])
{
    for (int i = 0; i < FACTS; i++) {
        int version = versions[facts[i].library];
        if (facts[i].code == code && version > 0 && version >= facts[i].since &&
            (!facts[i].before || version < facts[i].before))
            return &facts[i];
    }
    return NULL;
}

char *version_fact_range(const struct version_fact *fact, char *text, size_t bytes)
{
    const char *name = version_library_name(fact->library);
    int since = fact->since, before = fact->before;
    if (since && before)
        snprintf(text, bytes, "With %s %d.%d and later, before %d.%d", name, since / 10000,
                 since / 100 % 100, before / 10000, before / 100 % 100);
    else if (since)
        snprintf(text, bytes, "With %s %d.%d and later", name, since / 10000, since / 100 % 100);
    else
        snprintf(text, bytes, "With %s before %d.%d", name, before / 10000, before / 100 % 100);
    return text;
}

char *version_fact_job(const struct version_fact *fact, const int versions[LIBRARIES], char *text,
                       size_t bytes)
{
    int version = versions[fact->library];
    snprintf(text, bytes, "With %s %d.%d.%d, which the job has",
             version_library_name(fact->library), version / 10000, version / 100 % 100,
             version % 100);
    return text;
}
