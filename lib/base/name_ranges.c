/* name_ranges.c: prints names that differ in a number as ranges. */
#include "lib/base/name_ranges.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"

enum { DIGITS_MAX = 18 }; /* of a number that fits in 64 bits */

/* A name around its last number. */
struct numbered {
    const char *name, *digits, *suffix; /* prefix: from name to digits */
    int width;                          /* of the digits; 0: it has no number */
    uint64_t number;
};

static struct numbered split_number(const char *name)
{
    const char *end = name + strlen(name);
    while (end > name && !isdigit((unsigned char)end[-1]))
        end--;
    struct numbered split = {.name = name, .digits = end, .suffix = end};
    while (split.digits > name && split.width < DIGITS_MAX &&
           isdigit((unsigned char)split.digits[-1])) {
        split.digits--;
        split.width++;
    }
    if (split.width)
        split.number = strtoull(split.digits, NULL, 10);
    return split;
}

/* The order of the kinds: names of one kind differ only in the number. */
static int compare_kinds(const struct numbered *a, const struct numbered *b)
{
    size_t length_a = (size_t)(a->digits - a->name), length_b = (size_t)(b->digits - b->name);
    size_t shorter = length_a < length_b ? length_a : length_b;
    int prefix = memcmp(a->name, b->name, shorter);
    if (prefix)
        return prefix;
    if (length_a != length_b)
        return length_a < length_b ? -1 : 1;
    if (!a->width != !b->width)
        return a->width ? 1 : -1;
    return strcmp(a->suffix, b->suffix);
}

static int compare_names(const void *left, const void *right)
{
    const struct numbered a = split_number(*(const char *const *)left);
    const struct numbered b = split_number(*(const char *const *)right);
    int kinds = compare_kinds(&a, &b);
    if (kinds)
        return kinds;
    if (a.number != b.number)
        return a.number < b.number ? -1 : 1;
    return (a.width > b.width) - (a.width < b.width);
}

int names_sort(const char **name, int count)
{
    int kept = 0;
    if (count)
        qsort(name, (size_t)count, sizeof *name, compare_names);
    for (int i = 0; i < count; i++)
        if (!kept || strcmp(name[kept - 1], name[i]))
            name[kept++] = name[i];
    return kept;
}

/* 08 is followed by 09, 9 by 10; but 9 not by 010. */
static bool name_follows(const struct numbered *before, const struct numbered *after)
{
    bool grows = before->digits[0] != '0' && after->width == before->width + 1 &&
                 after->digits[0] != '0';
    return after->number == before->number + 1 && (after->width == before->width || grows);
}

static void add_range(struct text *text, const struct numbered *first, const struct numbered *last)
{
    text_add(text, "%.*s", first->width, first->digits);
    if (last->name != first->name)
        text_add(text, "-%.*s", last->width, last->digits);
}

/* Names of one kind. */
static void add_kind(struct text *text, const char *const *name, int count)
{
    struct numbered first = split_number(name[0]), last = first;
    if (count < 3) {
        text_add(text, "%s%s%s", name[0], count > 1 ? ", " : "", count > 1 ? name[1] : "");
        return;
    }
    text_add(text, "%.*s[", (int)(first.digits - first.name), first.name);
    for (int i = 1; i <= count; i++) {
        const struct numbered next = i < count ? split_number(name[i]) : last;
        if (i < count && name_follows(&last, &next)) {
            last = next;
            continue;
        }
        add_range(text, &first, &last);
        text_add(text, "%s", i < count ? "," : "]");
        first = last = next;
    }
    text_add(text, "%s", first.suffix);
}

char *name_ranges(const char *const *name, int count)
{
    struct text text = {0};
    int same = 1, kinds = 0;
    text_add(&text, "%s", "");
    for (int i = 0; i < count; i += same) {
        const struct numbered first = split_number(name[i]);
        for (same = 1; i + same < count; same++) {
            const struct numbered other = split_number(name[i + same]);
            if (!first.width || compare_kinds(&first, &other))
                break;
        }
        text_add(&text, "%s", i ? ", " : "");
        if (kinds++ == NAME_KINDS_MAX) {
            text_add(&text, "and %d more", count - i);
            break;
        }
        add_kind(&text, name + i, same);
    }
    return text_take(&text);
}
