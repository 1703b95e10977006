/* checks.c: the list of all checks, and the catalogue that is made of it. */
#include <stddef.h>

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

static const struct check *const checks[] = {
#define CHECK(number, name) &check_##name,
#include "analyzer/checks.def"
#undef CHECK
};

const struct check *check_next(const struct check *before)
{
    enum code last = before ? before->code : CODE_NONE;
    const struct check *next = NULL;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i]->code > last && (!next || checks[i]->code < next->code))
            next = checks[i];
    return next;
}

const struct check *check_find(const char *name)
{
    enum code code = code_find(name);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i]->code == code)
            return checks[i];
    return NULL;
}

const char *family_name(enum family family)
{
    static const char *const names[] = {
        [FAMILY_MATCH] = "mismatch",   [FAMILY_HANG] = "hang",
        [FAMILY_HAZARD] = "hazard",    [FAMILY_DEVICE] = "device",
        [FAMILY_TRAINING] = "training", [FAMILY_SPEED] = "performance",
        [FAMILY_TRACE] = "trace",
    };
    return names[family];
}
