/* finding.c: the names of how bad and how certain a finding is. */
#include "lib/finding/finding.h"

const char *severity_name(enum severity severity)
{
    static const char *const names[] = {"error", "warning", "note"};
    return (unsigned)severity < 3 ? names[severity] : "unknown";
}

const char *certainty_name(enum certainty certainty)
{
    return certainty == CERTAIN ? "certain" : "possible";
}
