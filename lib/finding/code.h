/* code.h: the codes of findings. They are compared as numbers; their names are only read, stored
 * and printed. */
#ifndef DDPCHECK_CODE_H
#define DDPCHECK_CODE_H

enum code {
    CODE_NONE,
#define CHECK(number, name, family) DC##number = number,
#include "lib/finding/checks.def"
#undef CHECK
    CODES_END
};

/* What a code is about; the first two are the families whose findings explain a hang. */
enum family {
    FAMILY_MATCH,
    FAMILY_HANG,
    FAMILY_HAZARD,
    FAMILY_DEVICE,
    FAMILY_TRAINING,
    FAMILY_SPEED,
    FAMILY_ENVIRONMENT,
    FAMILY_TRACE
};

/* "DC307". One string per code, valid for ever; "" for CODE_NONE. */
const char *code_name(enum code code);
/* The code that has this name; CODE_NONE if no check of this build has it. */
enum code code_find(const char *name);
/* FAMILY_TRACE for CODE_NONE. */
enum family code_family(enum code code);
/* "mismatch", "hang", ...: the families as users name them. */
const char *family_name(enum family family);

#endif
