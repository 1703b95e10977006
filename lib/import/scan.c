/* scan.c: matches a template, going back where a field of any text was taken too short. */
#include "lib/import/scan.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const int64_t NUMBER_MOST = (int64_t)1 << 53; /* more is damage */

/* Behind the brace that closes the one at `open`. */
static const char *close_brace(const char *open)
{
    int depth = 0;
    do {
        depth += (*open == '{') - (*open == '}');
    } while (*open++ && depth);
    return open;
}

/* Where the field that begins at `at` ends; NULL: there is none. */
static const char *end_of_field(const char *at, char kind, struct scanned_field *field)
{
    if (kind == 'w') {
        size_t bytes = strcspn(at, " \t\r\n,;'\"()[]{}");
        return bytes ? at + bytes : NULL;
    }
    const char *digits = at + strspn(at, " ");
    char *end;
    if (!isdigit((unsigned char)digits[*digits == '-']))
        return NULL;
    field->number = strtoll(digits, &end, 10);
    return field->number < NUMBER_MOST && field->number > -NUMBER_MOST ? end : NULL;
}

struct matching {
    struct scanned scanned;
    bool is_over; /* what follows a {r:...} is nowhere in the rest of the text: no later begin helps
                   */
};

/* Matches template[0 .. end) and then `rest`, another template or NULL. Returns the end in the
 * text, or NULL. */
static const char *match(const char *at, const char *template, const char *end, const char *rest,
                         struct matching *matching)
{
    struct scanned *scanned = &matching->scanned;
    for (; template <end &&*template != '{'; template ++)
        if (*at++ != *template)
            return NULL;
    if (template == end)
        return rest ? match(at, rest, rest + strlen(rest), NULL, matching) : at;
    const char *behind = close_brace(template), *last = at, *found;
    int fields = scanned->fields;
    if (template[1] == '?') {
        if ((found = match(at, template + 2, behind - 1, behind, matching)))
            return found;
        matching->is_over = false;
        scanned->fields = fields;
        return match(at, behind, end, rest, matching);
    }
    if (fields == SCAN_FIELDS_MAX)
        return NULL;
    struct scanned_field *field = &scanned->field[scanned->fields++];
    *field = (struct scanned_field){template + 3, at, (size_t)(behind - template) - 4, 0, 0};
    if (template[1] != 'r') {
        last = end_of_field(at, template[1], field);
        found = last ? match(last, behind, end, rest, matching) : NULL;
        if (!found && last > at + 1 && last[-1] == ':') /* "0000:c1:00.0:": it is not the word's */
            found = match(--last, behind, end, rest, matching);
    } else if (behind == end && !rest) {
        found = last = at + strcspn(at, "\r\n");
    } else {
        while (!(found = match(last, behind, end, rest, matching)) && !matching->is_over && *last)
            last++;
        matching->is_over = !found;
    }
    if (found)
        field->bytes = (size_t)(last - at);
    else
        scanned->fields = fields;
    return found;
}

/* --- the line at hand --- */

/* Which texts of four bytes it has: a bit for each of their hashes. */
enum { GRAM_BYTES = 4, GRAM_BITS = 15, GRAM_WORDS = (1 << GRAM_BITS) / 64 };
static _Thread_local struct {
    const char *begin, *end; /* NULL: there is none */
    uint64_t grams[GRAM_WORDS];
} line;

static uint32_t hash_gram(const char *text)
{
    uint32_t gram;
    memcpy(&gram, text, sizeof gram);
    return (gram * UINT32_C(2654435761)) >> (32 - GRAM_BITS); /* Knuth's multiplicative hash */
}

void scan_line_begin(const char *text, size_t bytes)
{
    memset(line.grams, 0, sizeof line.grams);
    line.begin = text;
    line.end = text + bytes;
    for (const char *at = text; at + GRAM_BYTES <= line.end; at++) {
        uint32_t hash = hash_gram(at);
        line.grams[hash / 64] |= UINT64_C(1) << hash % 64;
    }
}

void scan_line_end(void)
{
    line.begin = line.end = NULL;
}

/* What the template needs first is not in the line that the text is of. */
static inline bool is_absent(const char *text, const char *template)
{
    if (text < line.begin || text >= line.end)
        return false;
    while (*template == '{' && template[1] != '?')
        template = close_brace(template);
    for (int i = 0; i < GRAM_BYTES; i++)
        if (template[i] == '{' || !template[i])
            return false;
    uint32_t hash = hash_gram(template);
    return !(line.grams[hash / 64] >> hash % 64 & 1);
}

const char *scan_find(const char *text, const char *literal)
{
    return is_absent(text, literal) ? NULL : strstr(text, literal);
}

bool scan(const char *text, const char *template, struct scanned *scanned)
{
    if (is_absent(text, template))
        return false;
    struct matching matching = {0};
    const char *end = template + strlen(template), *text_end = text + strlen(text);
    size_t literal = strcspn(template, "{");
    for (; !matching.is_over; text++) {
        if (literal && !(text = memmem(text, (size_t)(text_end - text), template, literal)))
            return false;
        matching.scanned.begin = text;
        matching.scanned.end = match(text, template, end, NULL, &matching);
        if (matching.scanned.end) {
            *scanned = matching.scanned;
            return true;
        }
        if (!*text)
            return false;
    }
    return false;
}

int64_t scanned_number(const struct scanned *scanned, const char *name, int64_t otherwise)
{
    for (int i = 0; i < scanned->fields; i++)
        if (scanned->field[i].name_bytes == strlen(name) &&
            !memcmp(scanned->field[i].name, name, strlen(name)))
            return scanned->field[i].number;
    return otherwise;
}
