/* fault.c: finds out which findings are one fault. */
#include "lib/finding/fault.h"

#include <string.h>

#include "lib/finding/finding_site.h"

struct fault_key fault_of(struct trace *trace, const struct finding *finding)
{
    struct fault_key fault = {
        .code = finding->code,
        .certainty = finding->certainty,
        .fingerprint = finding->fingerprint,
    };
    if (trace)
        finding_location(trace, finding, FAULT_LOCATION, fault.location, sizeof fault.location);
    return fault;
}

bool fault_is_same(const struct fault_key *a, const struct fault_key *b)
{
    if (strcmp(a->code, b->code) != 0 || a->certainty != b->certainty)
        return false;
    return a->fingerprint == b->fingerprint ||
           (*a->location && strcmp(a->location, b->location) == 0);
}
