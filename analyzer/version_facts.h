/* version_facts.h: what of a finding holds in some versions of NCCL or PyTorch only. */
#ifndef DDPCHECK_VERSION_FACTS_H
#define DDPCHECK_VERSION_FACTS_H

#include <stddef.h>

#include "lib/finding/code.h"

enum library { LIBRARY_NCCL, LIBRARY_TORCH, LIBRARIES };
enum { VERSION_RANGE_BYTES = 64 };

struct version_fact {
    enum code code;
    enum library library;
    int since, before; /* as ncclGetVersion has it; 0: no limit */
    const char *words;
    const char *source; /* the document or source file, with its version */
};

/* As reports name the library, and as traces do (trace_library_version). */
const char *version_library_name(enum library library);
/* The fact about this code in these versions of the libraries; NULL: there is none, or its
 * library's version (0) is unknown. */
const struct version_fact *version_fact_find(enum code code, const int versions[LIBRARIES]);
/* All of them, in the table's order: the first for NULL, NULL after the last. */
const struct version_fact *version_fact_next(const struct version_fact *before);
/* The same of one code only. */
const struct version_fact *version_fact_of_code(enum code code, const struct version_fact *before);
/* "With NCCL 2.26 and later", "With PyTorch before 2.2". Returns text. */
char *version_fact_range(const struct version_fact *fact, char *text, size_t bytes);
/* "With NCCL 2.28.9, which the job has": the version of the fact's library. Returns text. */
char *version_fact_job(const struct version_fact *fact, const int versions[LIBRARIES], char *text,
                       size_t bytes);

#endif
