/* registry.c: all checks: what they do (groups of functions) and what they say about themselves. */
#include <string.h>

#include "analyzer/engine.h"

extern const struct check_group checks_match, checks_pairs, checks_setup, checks_waits, checks_devices, checks_writes,
                                checks_trace, checks_versions;

const struct check_group *const check_groups[] = {
    &checks_match, &checks_pairs, &checks_setup, &checks_devices, &checks_writes, &checks_versions, &checks_waits, &checks_trace, NULL,
};

const struct check analyzer_checks[] = {
#define CHECK(code, title, severity, ...) {code, title, SEVERITY_##severity, __VA_ARGS__},
#include "analyzer/checks/dc1xx_text.def"
#include "analyzer/checks/dc2xx_text.def"
#include "analyzer/checks/dc3xx_text.def"
#include "analyzer/checks/dc4xx_text.def"
#include "analyzer/checks/dc9xx_text.def"
#undef CHECK
    {.code = NULL},
};

const struct check *analyzer_check_find(const char *code)
{
    for (const struct check *check = analyzer_checks; check->code; check++)
        if (!strcmp(check->code, code))
            return check;
    return NULL;
}
