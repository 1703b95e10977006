/* keep.c: reads the argument of --keep. */
#include "lib/trace/keep.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t smallest_bytes = 1 << 20, second_ns = 1000000000;

struct keep_unit {
    char letter;
    uint64_t factor;
};

/* A number and the letter of its unit. Returns what follows them; NULL if they are not there, or
 * the value is 0 or does not fit. */
static const char *parse_amount(const char *text, const struct keep_unit *units, uint64_t *value)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return NULL;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    while (units->letter && units->letter != toupper((unsigned char)*end))
        units++;
    if (errno || !number || !units->letter || number > INT64_MAX / units->factor)
        return NULL;
    *value = number * units->factor;
    return end + 1;
}

int keep_parse(const char *text, struct keep_limits *limits)
{
    static const struct keep_unit sizes[] = {
        {'K', 1 << 10}, {'M', 1 << 20}, {'G', 1 << 30}, {'T', UINT64_C(1) << 40}, {0}};
    const struct keep_unit ages[] = {{'S', second_ns},
                                     {'M', 60 * second_ns},
                                     {'H', 3600 * second_ns},
                                     {'D', 86400 * second_ns},
                                     {0}};
    *limits = (struct keep_limits){0};
    if (strncmp(text, "all", 3) == 0)
        text += 3;
    else if (!(text = parse_amount(text, sizes, &limits->bytes)) || limits->bytes < smallest_bytes)
        return -1;
    if (*text == ',' && !(text = parse_amount(text + 1, ages, &limits->age_ns)))
        return -1;
    return *text ? -1 : 0;
}
