/* code.c: the names of the checks' codes. */
#include "analyzer/code.h"

#include <string.h>

static const struct {
    enum code code;
    const char *name;
} code_names[] = {
#define CHECK(number, check) {DC##number, "DC" #number},
#include "analyzer/checks.def"
#undef CHECK
};

const char *code_name(enum code code)
{
    for (size_t i = 0; i < sizeof code_names / sizeof *code_names; i++)
        if (code_names[i].code == code)
            return code_names[i].name;
    return "";
}

enum code code_find(const char *name)
{
    for (size_t i = 0; i < sizeof code_names / sizeof *code_names; i++)
        if (!strcmp(code_names[i].name, name))
            return code_names[i].code;
    return CODE_NONE;
}
