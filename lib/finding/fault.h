/* fault.h: findings that are one fault: what one line of the program does wrong on several
 * communicators, with several datatypes or by several ranks is shown once. */
#ifndef DDPCHECK_FAULT_H
#define DDPCHECK_FAULT_H

#include "lib/finding/finding.h"
#include "lib/trace/trace.h"

enum { FAULT_LOCATION = 256 };

struct fault_key {
    const char *code; /* of the finding: valid as long as it is */
    enum certainty certainty;
    uint64_t fingerprint;
    char location[FAULT_LOCATION]; /* the user's line, "" if none is known */
};

/* `trace` may be NULL: no line is known. */
struct fault_key fault_of(struct trace *trace, const struct finding *finding);
/* They did the same (their fingerprints are equal), or it is the same line. */
bool fault_is_same(const struct fault_key *a, const struct fault_key *b);

#endif
