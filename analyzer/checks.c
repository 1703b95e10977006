/* checks.c: the list of all checks, and the catalogue that is made of it. */
#include <stddef.h>

#include "analyzer/check.h"
#include "lib/base/text.h"

const struct check *const checks[CHECK_COUNT] = {
#define CHECK(number, name, family) &check_##name,
#include "lib/finding/checks.def"
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

const struct check *check_of(enum code code)
{
    for (int i = 0; i < CHECK_COUNT; i++)
        if (checks[i]->code == code)
            return checks[i];
    return NULL;
}

const struct check *check_find(const char *name)
{
    return check_of(code_find(name));
}

/* "DC101", "DC101, DC102" or "DC101 to DC103". */
static void add_codes(struct text *text, enum code first, enum code last)
{
    text_add(text, "%s", code_name(first));
    if (first < last)
        text_add(text, "%s%s", last == first + 1 ? ", " : " to ", code_name(last));
}

void check_list_add(struct text *text, bool (*is_listed)(const struct check *check, unsigned what),
                    unsigned what)
{
    enum code first = CODE_NONE, last = CODE_NONE;
    for (const struct check *check = check_next(NULL); check; check = check_next(check)) {
        if (!is_listed(check, what))
            continue;
        bool is_same = first && code_family(check->code) == code_family(last);
        if (is_same && check->code == last + 1) {
            last = check->code;
            continue;
        }
        if (first)
            add_codes(text, first, last);
        if (is_same)
            text_add(text, ", ");
        else
            text_add(text, "%s%s (", first ? "), " : "", family_name(code_family(check->code)));
        first = last = check->code;
    }
    if (first) {
        add_codes(text, first, last);
        text_add(text, ")");
    }
}
