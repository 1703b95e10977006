/* not_checked.c: lists the checks that a trace's source can't support, with their ranks. */
#include "cmd/report/not_checked.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/check.h"
#include "cmd/report/report_by_host.h"
#include "lib/base/array.h"
#include "lib/import/import.h"

enum { RANKS_BYTES = 256 };

struct gathering {
    struct trace *trace;
    struct not_checked *list;
    int count;
    bool failed;
};

static struct not_checked *entry_of(struct gathering *gathering, const struct lack_text *lack,
                                    const char *title, bool is_text)
{
    for (int i = 0; i < gathering->count; i++)
        if (gathering->list[i].lack == lack && !strcmp(gathering->list[i].title, title))
            return &gathering->list[i];
    if (!ARRAY_ADD(gathering->list, gathering->count))
        return NULL;
    struct not_checked *entry = &gathering->list[gathering->count++];
    *entry = (struct not_checked){.lack = lack, .is_text = is_text};
    snprintf(entry->title, sizeof entry->title, "%s", title);
    return entry;
}

static void add_unchecked_process(struct gathering *gathering, int process, const char *title,
                                  bool is_text)
{
    const struct process_info *info = trace_process(gathering->trace, process);
    for (const struct lack_text *lack = lack_texts; lack->bit && !gathering->failed; lack++) {
        if (!(info->lacks & lack->bit) || !*lack->codes)
            continue;
        struct not_checked *entry = entry_of(gathering, lack, title, is_text);
        gathering->failed = !entry || (info->rank >= 0 && rankset_add(&entry->ranks, info->rank));
        if (entry)
            entry->processes++;
    }
}

static void add_database(struct gathering *gathering, int database)
{
    sqlite3_stmt *row = NULL;
    /* Databases before schema 1.3 have no such table: all of theirs is the shim's. */
    if (sqlite3_prepare_v2(trace_database(gathering->trace, database),
                           "SELECT process, title, format FROM imported ORDER BY process", -1, &row,
                           NULL) != SQLITE_OK)
        return;
    while (sqlite3_step(row) == SQLITE_ROW && !gathering->failed) {
        int process = trace_process_of(gathering->trace, database, sqlite3_column_int(row, 0));
        const char *title = (const char *)sqlite3_column_text(row, 1);
        const char *format = (const char *)sqlite3_column_text(row, 2);
        const struct import_source *source = format ? import_source_find(format) : NULL;
        if (process >= 0)
            add_unchecked_process(gathering, process, title ? title : "its source",
                                  source && (source->reads_any_text || source->says_little));
    }
    sqlite3_finalize(row);
}

static int by_title_and_bit(const void *left, const void *right)
{
    const struct not_checked *a = left, *b = right;
    int titles = strcmp(a->title, b->title);
    if (titles)
        return titles;
    return (a->lack > b->lack) - (a->lack < b->lack);
}

int not_checked_find(struct trace *trace, struct not_checked **list)
{
    struct gathering gathering = {.trace = trace};
    for (int i = 0; i < trace_database_count(trace); i++)
        add_database(&gathering, i);
    if (gathering.failed) {
        not_checked_free(gathering.list, gathering.count);
        *list = NULL;
        return -1;
    }
    for (int i = 0; i < gathering.count; i++)
        gathering.list[i].all = gathering.list[i].processes == trace_process_count(trace);
    if (gathering.count)
        qsort(gathering.list, (size_t)gathering.count, sizeof *gathering.list, by_title_and_bit);
    *list = gathering.list;
    return gathering.count;
}

static const struct lack_text by_host_lack = {
    .name = "by-host",
    .what = "they compare all records of several hosts, of which each was analysed by itself "
            "(--by-host)",
    .codes = by_host_unchecked,
};

int not_checked_add_by_host(struct not_checked **list, int count)
{
    if (!ARRAY_ADD(*list, count))
        return -1;
    (*list)[count] = (struct not_checked){.lack = &by_host_lack, .all = true};
    return count + 1;
}

char *not_checked_text(const struct not_checked *entry, char *text, size_t bytes)
{
    char ranks[RANKS_BYTES];
    int count = rankset_count(&entry->ranks);
    if (entry->lack == &by_host_lack)
        snprintf(text, bytes, "%s", entry->lack->what);
    else if (entry->all || count == 0)
        snprintf(text, bytes, "%s does not say %s", entry->title, entry->lack->what);
    else
        snprintf(text, bytes, "%s does not say %s (%s %s)", entry->title, entry->lack->what,
                 count == 1 ? "rank" : "ranks", rankset_brief(&entry->ranks, ranks, sizeof ranks));
    return text;
}

/* "DC204, DC501-DC507" */
static bool lists_code(const char *codes, const char *code)
{
    int first, last, words, number = atoi(code + strlen("DC"));
    while ((words = sscanf(codes, " DC%3d-DC%3d", &first, &last)) > 0) {
        if (number >= first && number <= (words == 1 ? first : last))
            return true;
        codes += strcspn(codes, ",");
        codes += *codes == ',';
    }
    return false;
}

static bool is_unchecked(const struct not_checked *list, int count, const char *code)
{
    for (int i = 0; i < count; i++)
        if (lists_code(list[i].lack->codes, code))
            return true;
    return false;
}

void not_checked_codes(struct text *text, const struct not_checked *list, int count)
{
    enum { FAMILY = 100 };
    const char *first = NULL, *last = NULL;
    for (int number = CODE_NONE + 1; number < CODES_END; number++) {
        const char *code = code_name((enum code)number);
        if (*code && is_unchecked(list, count, code)) {
            first = first ? first : code;
            last = code;
        } else if (first && (*code || number % FAMILY == FAMILY - 1)) {
            text_add(text, first == last ? "%s%s" : "%s%s-%s", text->len ? ", " : "", first, last);
            first = NULL;
        }
    }
}

static bool is_unchecked_alike(const struct not_checked *a, const struct not_checked *b)
{
    char first[RANKS_BYTES], second[RANKS_BYTES];
    if (strcmp(a->title, b->title))
        return false;
    return a->is_text ||
           (a->all == b->all && !strcmp(rankset_text(&a->ranks, first, sizeof first),
                                        rankset_text(&b->ranks, second, sizeof second)));
}

int not_checked_alike(const struct not_checked *list, int count)
{
    int alike = 1;
    while (alike < count && is_unchecked_alike(list, &list[alike]))
        alike++;
    return alike;
}

const struct not_checked *not_checked_code(const struct not_checked *list, int count,
                                           const char *code)
{
    const struct check *check = check_find(code);
    for (int i = 0; check && i < count; i++)
        if (list[i].lack == &by_host_lack ? lists_code(list[i].lack->codes, code)
                                          : (list[i].lack->bit & check->needs) != 0)
            return &list[i];
    return NULL;
}

void not_checked_free(struct not_checked *list, int count)
{
    for (int i = 0; i < count; i++)
        rankset_free(&list[i].ranks);
    free(list);
}
