/* codes.c: parses the codes of findings that a user types. */
#include "cmd/options/codes.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "analyzer/analyzer.h"
#include "cmd/options/options.h"

enum { CHECKS_MAX = 256 };

/* Compares `bytes` of a typed code with a real one, which lies under "DC": upper and lower case are
 * one, the letters may be left out, x is any digit. */
static bool matches_code(const char *typed, size_t bytes, const char *code)
{
    if (bytes > 0 && isdigit((unsigned char)typed[0]))
        code += 2;
    if (strlen(code) != bytes)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        int c = toupper((unsigned char)typed[i]);
        if (c != code[i] && !(c == 'X' && isdigit((unsigned char)code[i])))
            return false;
    }
    return true;
}

static bool is_code_named(const char *item, size_t bytes, enum code code)
{
    const char *category = family_name(code_family(code));
    return (strlen(category) == bytes && !strncasecmp(category, item, bytes)) ||
           matches_code(item, bytes, code_name(code));
}

static const char *next_code(const char **rest, size_t *bytes)
{
    *rest += strspn(*rest, ", ");
    const char *item = *rest;
    *bytes = strcspn(item, ", ");
    *rest += *bytes;
    return *bytes ? item : NULL;
}

bool codes_have(const char *list, enum code code)
{
    size_t bytes;
    if (!list)
        return true;
    for (const char *item; (item = next_code(&list, &bytes));)
        if (is_code_named(item, bytes, code))
            return true;
    return false;
}

static const struct check *find_code(const char *text, size_t bytes)
{
    for (const struct check *check = check_next(NULL); check; check = check_next(check))
        if (is_code_named(text, bytes, check->code))
            return check;
    return NULL;
}

bool codes_unknown(const char *list, char *item, size_t bytes)
{
    size_t length;
    for (const char *text; (text = next_code(&list, &length));) {
        if (!find_code(text, length)) {
            snprintf(item, bytes, "%.*s", (int)length, text);
            return true;
        }
    }
    return false;
}

const struct check *codes_find(const char *text)
{
    for (const struct check *check = check_next(NULL); check; check = check_next(check))
        if (!strpbrk(text, "xX") && matches_code(text, strlen(text), code_name(check->code)))
            return check;
    return NULL;
}

const char *codes_nearest(const char *text)
{
    const char *names[CHECKS_MAX + 1] = {NULL};
    char typed[16];
    int count = 0;
    for (const struct check *check = check_next(NULL); check && count < CHECKS_MAX;
         check = check_next(check))
        names[count++] = code_name(check->code);
    snprintf(typed, sizeof typed, "%s%s", isdigit((unsigned char)*text) ? "DC" : "", text);
    for (char *c = typed; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return options_nearest(typed, names);
}
