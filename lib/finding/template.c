/* template.c: fills in the fields of sentences. */
#include "lib/finding/template.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The first of the characters `wanted` between `at` and `end` that is in no inner brackets; `end`
 * if there is none. */
static const char *find_outside(const char *at, const char *end, const char *wanted)
{
    int depth = 0;
    for (; at < end && (depth || !strchr(wanted, *at)); at++) {
        depth += strchr("{[<", *at) != NULL;
        depth -= strchr("}]>", *at) != NULL;
    }
    return at;
}

/* Where the words go on after the mark that find_outside found. */
static const char *after(const char *mark, const char *end)
{
    return mark < end ? mark + 1 : end;
}

static const struct template_field *find_field(const struct words *words, const char *name,
                                               size_t length)
{
    const struct template_field *field = words->fields;
    while (field->name && (strlen(field->name) != length || memcmp(field->name, name, length) != 0))
        field++;
    return field->name ? field : NULL;
}

static void add_field(struct words *words, const char *at, const char *end)
{
    const char *colon = find_outside(at, end, ":");
    const struct template_field *field = find_field(words, at, (size_t)(colon - at));
    words->number = field && field->numbers < 0 ? words->side : 0;
    if (colon < end)
        words->number = atoi(colon + 1);
    bool is_known = field && words->number < abs(field->numbers);
    if (is_known)
        field->add(words);
    else
        text_add(words->text, "{%.*s}", (int)(end - at), at);
}

static bool add_words(struct words *words, const char *at, const char *end);

static bool add_choice(struct words *words, bool is_first, const char *at, const char *end)
{
    const char *bar = find_outside(at, end, "|");
    return is_first ? add_words(words, at, bar) : add_words(words, after(bar, end), end);
}

static bool has_words(struct words *words, const char *at, const char *end)
{
    size_t length = words->text->len;
    bool is_one = words->is_one;
    add_field(words, at, end);
    size_t added = words->text->len - length;
    bool is_zero = added == 1 && words->text->data[length] == '0';
    text_cut(words->text, length);
    words->is_one = is_one;
    return added && !is_zero;
}

/* What stands in braces. Returns false if it is a field, and empty. */
static bool add_braces(struct words *words, const char *at, const char *end)
{
    const char *mark = find_outside(at, end, "?|");
    size_t length = words->text->len;
    bool is_silent = at < end && *at == '=';
    if (mark < end && *mark == '|')
        return add_choice(words, words->is_one, at, end);
    if (mark < end)
        return add_choice(words, has_words(words, at, mark), mark + 1, end);
    add_field(words, at + is_silent, end);
    if (is_silent)
        text_cut(words->text, length);
    return is_silent || words->text->len > length;
}

static void add_optional(struct words *words, const char *at, const char *end)
{
    size_t length = words->text->len;
    bool is_one = words->is_one;
    if (add_words(words, at, end))
        return;
    text_cut(words->text, length);
    words->is_one = is_one;
}

static void add_each_side(struct words *words, const char *at, const char *end)
{
    bool has_first = end - at > 1 && isdigit((unsigned char)*at) && at[1] == ':';
    int first = has_first ? *at - '0' : 0, outer = words->side;
    const char *body = has_first ? at + 2 : at, *body_end = find_outside(body, end, "|");
    const char *between = after(body_end, end), *between_end = find_outside(between, end, "|");
    const char *last = between_end < end ? between_end + 1 : between;
    for (words->side = first; words->side < words->sides; words->side++) {
        bool is_last = words->side + 1 == words->sides;
        if (words->side && is_last)
            add_words(words, last, end);
        else if (words->side)
            add_words(words, between, between_end);
        add_words(words, body, body_end);
    }
    words->side = outer;
}

static bool add_enclosed(struct words *words, char bracket, const char *at, const char *end)
{
    if (bracket == '{')
        return add_braces(words, at, end);
    if (bracket == '[')
        add_optional(words, at, end);
    else
        add_each_side(words, at, end);
    return true;
}

/* Returns false if a field outside of [...] is empty. */
static bool add_words(struct words *words, const char *at, const char *end)
{
    bool is_complete = true;
    while (at < end) {
        size_t plain = strcspn(at, "{[<");
        if (plain > (size_t)(end - at))
            plain = (size_t)(end - at);
        text_add(words->text, "%.*s", (int)plain, at);
        at += plain;
        if (at == end)
            break;
        const char *close = find_outside(at + 1, end, "}]>");
        is_complete &= add_enclosed(words, *at, at + 1, close);
        at = after(close, end);
    }
    return is_complete;
}

void template_add(struct words *words, const char *template)
{
    add_words(words, template, template + strlen(template));
}
