#include "cmd/options/codes.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "analyzer/analyzer.h"
#include "cmd/options/options.h"

enum { CHECKS_MAX = 256 };

static const struct {
    const char *word, *codes;
} categories[] = {
    {"mismatch", "DC1XX"}, {"hang", "DC2XX"},        {"hazard", "DC3XX"}, {"device", "DC4XX"},
    {"training", "DC5XX"}, {"performance", "DC6XX"}, {"trace", "DC9XX"},
};

/* Compares `bytes` of a typed code with a real one, which lies under "DC": upper and lower case are
 * one, the letters may be left out, x is any digit. */
static bool is_like(const char *typed, size_t bytes, const char *code)
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

static bool is_named(const char *item, size_t bytes, const char *code)
{
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (strlen(categories[i].word) == bytes && !strncasecmp(categories[i].word, item, bytes))
            return is_like(categories[i].codes, strlen(categories[i].codes), code);
    return is_like(item, bytes, code);
}

static const char *next_item(const char **rest, size_t *bytes)
{
    *rest += strspn(*rest, ", ");
    const char *item = *rest;
    *bytes = strcspn(item, ", ");
    *rest += *bytes;
    return *bytes ? item : NULL;
}

bool codes_have(const char *list, const char *code)
{
    size_t bytes;
    if (!list)
        return true;
    for (const char *item; (item = next_item(&list, &bytes));)
        if (is_named(item, bytes, code))
            return true;
    return false;
}

static const struct check *find(const char *text, size_t bytes)
{
    for (const struct check *check = analyzer_checks; check->code; check++)
        if (is_named(text, bytes, check->code))
            return check;
    return NULL;
}

bool codes_unknown(const char *list, char *item, size_t bytes)
{
    size_t length;
    for (const char *text; (text = next_item(&list, &length));) {
        if (!find(text, length)) {
            snprintf(item, bytes, "%.*s", (int)length, text);
            return true;
        }
    }
    return false;
}

const char *codes_category(const char *code)
{
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (is_like(categories[i].codes, strlen(categories[i].codes), code))
            return categories[i].word;
    return "trace";
}

const struct check *codes_find(const char *text)
{
    for (const struct check *check = analyzer_checks; check->code; check++)
        if (!strpbrk(text, "xX") && is_like(text, strlen(text), check->code))
            return check;
    return NULL;
}

const char *codes_nearest(const char *text)
{
    const char *names[CHECKS_MAX + 1] = {NULL};
    char typed[16];
    int count = 0;
    for (const struct check *check = analyzer_checks; check->code && count < CHECKS_MAX; check++)
        names[count++] = check->code;
    snprintf(typed, sizeof typed, "%s%s", isdigit((unsigned char)*text) ? "DC" : "", text);
    for (char *c = typed; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return options_nearest(typed, names);
}
