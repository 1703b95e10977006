/* filter.c: matches rows against a filter of words and fields. */
#include "tui/filter.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rankset.h"

enum { WORD_BYTES = 64 };

/* "  3", "! 0-2,5", "▶ 0-2": the ranks behind the mark. */
static bool cell_has_rank(const char *cell, const char *value)
{
    struct rankset ranks = {0};
    char *end;
    long rank = strtol(value, &end, 10);
    const char *list = strrchr(cell, ' ');
    list = list ? list + 1 : cell;
    if (end == value || *end || rank < 0 || rank > INT32_MAX)
        return false;
    bool found = isdigit((unsigned char)*list) && rankset_parse(&ranks, list) == 0 &&
                 rankset_has(&ranks, (int)rank);
    rankset_free(&ranks);
    return found;
}

static bool is_column_titled(const struct column *column, const char *field)
{
    return !strncasecmp(column->title, field, strlen(field));
}

static bool holds_rank(const struct rows *rows, const struct row *row, const char *value)
{
    for (int i = 0; i < rows->columns; i++)
        if (row->cell[i].text && is_column_titled(&rows->column[i], "rank") &&
            cell_has_rank(row->cell[i].text, value))
            return true;
    return false;
}

/* "comm 5ae7" wherever it is written. */
static bool holds_comm(const struct rows *rows, const struct row *row, const char *value)
{
    char name[WORD_BYTES + 8];
    snprintf(name, sizeof name, "comm %s", value);
    return row_holds(rows, row, name);
}

/* A state is what the row says of itself, or what its text has. Whoever has called an operation
 * that is not done is waiting. */
static bool holds_state(const struct rows *rows, const struct row *row, const char *value)
{
    if (!row->state)
        return row_holds(rows, row, value);
    bool waits = !strcmp(row->state, "issued") || !strcmp(row->state, "started");
    return strcasestr(row->state, value) || (waits && strcasestr("waiting", value));
}

static bool holds_field(const struct rows *rows, const struct row *row, const char *word)
{
    static const struct {
        const char *field;
        bool (*holds)(const struct rows *rows, const struct row *row, const char *value);
    } fields[] = {{"rank:", holds_rank}, {"comm:", holds_comm}, {"state:", holds_state}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t bytes = strlen(fields[i].field);
        if (!strncasecmp(word, fields[i].field, bytes))
            return !word[bytes] || fields[i].holds(rows, row, word + bytes);
    }
    return row_holds(rows, row, word);
}

bool filter_keeps(const struct rows *rows, const struct row *row, const char *filter)
{
    char word[WORD_BYTES];
    bool has_field = strstr(filter, ":") != NULL;
    if (!has_field) /* as it was typed, blanks and all */
        return row_holds(rows, row, filter);
    for (const char *next = filter + strspn(filter, " "); *next; next += strspn(next, " ")) {
        size_t bytes = strcspn(next, " ");
        snprintf(word, sizeof word, "%.*s", (int)bytes, next);
        if (!holds_field(rows, row, word))
            return false;
        next += bytes;
    }
    return true;
}
