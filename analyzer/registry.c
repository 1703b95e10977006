/* registry.c: all checks: what they do (groups of functions) and what they say about themselves. */
#include <string.h>

#include "analyzer/engine.h"

/* The groups of functions, in the order in which they are asked: what happened first explains what
 * follows. */
#define GROUPS            \
    GROUP(lockstep)       \
    GROUP(match)          \
    GROUP(layout)         \
    GROUP(empty)          \
    GROUP(pairs)          \
    GROUP(unmatched)      \
    GROUP(invalid)        \
    GROUP(setup)          \
    GROUP(devices)        \
    GROUP(current_device) \
    GROUP(freed)          \
    GROUP(hazards)        \
    GROUP(overlap)        \
    GROUP(unwritten)      \
    GROUP(versions)       \
    GROUP(steps)          \
    GROUP(notes)          \
    GROUP(waits)          \
    GROUP(groups)         \
    GROUP(payloads)       \
    GROUP(alike)          \
    GROUP(gradients)      \
    GROUP(nonfinite)      \
    GROUP(parameters)     \
    GROUP(order)          \
    GROUP(unfinished)     \
    GROUP(trace)          \
    GROUP(blind)          \
    GROUP(said)           \
    GROUP(behind)

#define GROUP(name) extern const struct check_group checks_##name;
GROUPS
#undef GROUP

const struct check_group *const check_groups[] = {
#define GROUP(name) &checks_##name,
    GROUPS
#undef GROUP
        NULL,
};

const struct check analyzer_checks[] = {
#define CHECK(code, title, severity, ...) {code, title, SEVERITY_##severity, __VA_ARGS__},
#include "analyzer/checks/match/dc1xx_text.def"
#include "analyzer/checks/hang/dc2xx_text.def"
#include "analyzer/checks/hazard/dc3xx_text.def"
#include "analyzer/checks/device/dc4xx_text.def"
#include "analyzer/checks/training/dc5xx_text.def"
#include "analyzer/checks/training/dc504_text.def"
#include "analyzer/checks/speed/dc6xx_text.def"
#include "analyzer/checks/trace/dc9xx_text.def"
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
