/* checks.c: the list of all checks, and the catalogue that is made of it. */
#include <stddef.h>

#include "analyzer/check.h"

const struct check *const checks[CHECK_COUNT] = {
#define CHECK(number, name) &check_##name,
#include "analyzer/checks.def"
#undef CHECK
};

const struct check *check_next(const struct check *before)
{
    enum code last = before ? before->code : CODE_NONE;
    const struct check *next = NULL;
    for (int i = 0; i < CHECK_COUNT; i++)
        if (checks[i]->code > last && (!next || checks[i]->code < next->code))
            next = checks[i];
    return next;
}

const struct check *check_find(const char *name)
{
    enum code code = code_find(name);
    for (int i = 0; i < CHECK_COUNT; i++)
        if (checks[i]->code == code)
            return checks[i];
    return NULL;
}

const char *family_name(enum family family)
{
    static const char *const names[] = {
        [FAMILY_MATCH] = "mismatch", [FAMILY_HANG] = "hang",         [FAMILY_HAZARD] = "hazard",
        [FAMILY_DEVICE] = "device",  [FAMILY_TRAINING] = "training", [FAMILY_SPEED] = "performance",
        [FAMILY_TRACE] = "trace",
    };
    return names[family];
}
