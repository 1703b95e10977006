/* code.h: the numbers of the checks. Inside, codes are compared; their names are only printed. */
#ifndef DDPCHECK_CODE_H
#define DDPCHECK_CODE_H

enum code {
    CODE_NONE,
#define CHECK(number, name) DC##number = number,
#include "analyzer/checks.def"
#undef CHECK
    CODES_END
};

/* "DC307". One string per code, valid for ever; "" for CODE_NONE. */
const char *code_name(enum code code);
/* The code that has this name; CODE_NONE if no check of this build has it. */
enum code code_find(const char *name);

#endif
