/* filter.c: matches rows against a filter of words and fields. */
#include "tui/filter.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rankset.h"

enum { WORD_BYTES = 64 };

/* "0-2,5". It is read without a set, as each row reads it: it may name millions of ranks. */
static bool is_list_of_ranks(const char *list)
{
    int first, last;
    do
        if (rankset_take_range(&list, &first, &last) < 0)
            return false;
    while (*list);
    return true;
}

static bool has_rank_between(const char *list, int least, int most)
{
    int first, last;
    while (*list && rankset_take_range(&list, &first, &last) == 0) {
        if (first < least)
            first = least;
        if (last > most)
            last = most;
        if (first <= last)
            return true;
    }
    return false;
}

/* "  3", "! 0-2,5", "▶ 0-2": the ranks behind the mark. */
static bool cell_has_rank(const char *cell, const char *value)
{
    int first, last;
    const char *list = strrchr(cell, ' ');
    list = list ? list + 1 : cell;
    if (!is_list_of_ranks(list) || !is_list_of_ranks(value))
        return false;
    while (*value && rankset_take_range(&value, &first, &last) == 0)
        if (has_rank_between(list, first, last))
            return true;
    return false;
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

/* A state is what the row says of itself, or what its text has. A rank
 * that has called an operation that is not done is waiting. */
static bool holds_state(const struct rows *rows, const struct row *row, const char *value)
{
    if (!row->state)
        return row_holds(rows, row, value);
    bool waits = !strcmp(row->state, "issued") || !strcmp(row->state, "started");
    return strcasestr(row->state, value) || (waits && strcasestr("waiting", value));
}

static const struct field {
    const char *name;
    bool (*holds)(const struct rows *rows, const struct row *row, const char *value);
} fields[] = {{"rank:", holds_rank}, {"comm:", holds_comm}, {"state:", holds_state}};

/* The field that the word begins with; NULL if it is text. */
static const struct field *field_of(const char *word)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!strncasecmp(word, fields[i].name, strlen(fields[i].name)))
            return &fields[i];
    return NULL;
}

static bool holds_word(const struct rows *rows, const struct row *row, const char *word)
{
    const struct field *field = field_of(word);
    const char *value = field ? word + strlen(field->name) : word;
    if (!field)
        return row_holds(rows, row, word);
    return !*value || field->holds(rows, row, value);
}

/* Copies the filter's next word and moves behind it. False if there is none. */
static bool next_word(const char **filter, char word[static WORD_BYTES])
{
    const char *begin = *filter + strspn(*filter, " ");
    size_t bytes = strcspn(begin, " ");
    snprintf(word, WORD_BYTES, "%.*s", (int)bytes, begin);
    *filter = begin + bytes;
    return bytes > 0;
}

bool filter_keeps(const struct rows *rows, const struct row *row, const char *filter)
{
    char word[WORD_BYTES];
    bool has_field = strstr(filter, ":") != NULL;
    if (!has_field) /* as it was typed, blanks and all */
        return row_holds(rows, row, filter);
    while (next_word(&filter, word))
        if (!holds_word(rows, row, word))
            return false;
    return true;
}

/* Letters, a colon and something that is not a second colon: "foo:1", not "train.c:176" or
 * "std::sort". */
static int unknown_field_letters(const char *word)
{
    int letters = 0;
    while (isalpha((unsigned char)word[letters]))
        letters++;
    return word[letters] == ':' && word[letters + 1] != ':' && !field_of(word) ? letters : 0;
}

static bool names_no_rank(const char *word)
{
    const struct field *field = field_of(word);
    const char *value = field ? word + strlen(field->name) : "";
    return *value && field->holds == holds_rank && !is_list_of_ranks(value);
}

void filter_explain(const char *filter, char *text, size_t bytes)
{
    char word[WORD_BYTES];
    snprintf(text, bytes, "No match (f: change the filter, Esc in it: clear).");
    while (next_word(&filter, word)) {
        int letters = unknown_field_letters(word);
        if (letters > 0)
            snprintf(text, bytes,
                     "No match for '%s', and there is no field '%.*s'. Fields: rank:3, comm:5ae7, "
                     "state:missing (f changes the filter).",
                     word, letters, word);
        else if (names_no_rank(word))
            snprintf(text, bytes,
                     "'%s' names no rank: write rank:3 or rank:0-7,9 (f changes the filter).",
                     word);
    }
}
