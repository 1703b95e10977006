/* report_environment.c: prints what the ranks ran in: once what all have, and by ranks what
 * differs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/json_values.h"
#include "cmd/report/report_environment.h"
#include "cmd/report/report_print.h"
#include "lib/base/array.h"

static void add_environment_item(void *context, const char *name, const char *value,
                                 const char *set_by)
{
    struct environment_list *environment = context;
    if (environment->failed || !ARRAY_ADD(environment->item, environment->count)) {
        environment->failed = true;
        return;
    }
    struct environment_item *item = &environment->item[environment->count++];
    *item = (struct environment_item){strdup(name), strdup(value), ""};
    snprintf(item->set_by, sizeof item->set_by, "%s", set_by);
    environment->failed = !item->name || !item->value;
}

int environment_load(struct environment_list *environment, struct trace *trace, int process)
{
    *environment = (struct environment_list){0};
    trace_environment(trace, process, add_environment_item, environment);
    return environment->failed ? -1 : 0;
}

void environment_free(struct environment_list *environment)
{
    for (int i = 0; i < environment->count; i++) {
        free(environment->item[i].name);
        free(environment->item[i].value);
    }
    free(environment->item);
    *environment = (struct environment_list){0};
}

int environment_order(const struct environment_item *a, const struct environment_item *b)
{
    if (a && b)
        return strcmp(a->name, b->name);
    return a ? -1 : 1;
}

bool environment_is_variable(const struct environment_item *item)
{
    return !strcmp(item->set_by, "start") || !strcmp(item->set_by, "program");
}

enum { NAME_COLUMN = 2, VALUE_COLUMN = 28, RANKS_BYTES = 256 };

/* One value, and who has it. */
struct shared_value {
    char *name, *value;
    char set_by[16];
    struct rankset ranks;
};

struct shared_values {
    struct shared_value *item;
    int count, processes;
    struct rankset known;
    bool failed;
};

static struct shared_value *find_shared(struct shared_values *values,
                                        const struct environment_item *item)
{
    for (int i = 0; i < values->count; i++)
        if (!strcmp(values->item[i].name, item->name) &&
            !strcmp(values->item[i].value, item->value) &&
            !strcmp(values->item[i].set_by, item->set_by))
            return &values->item[i];
    if (!ARRAY_ADD(values->item, values->count))
        return NULL;
    struct shared_value *made = &values->item[values->count];
    *made = (struct shared_value){.name = strdup(item->name), .value = strdup(item->value)};
    memcpy(made->set_by, item->set_by, sizeof made->set_by);
    values->count++;
    return made->name && made->value ? made : NULL;
}

/* Its rank; of several, the lowest. */
static int rank_of_process(const struct report *report, int process)
{
    int rank = report->rank[process];
    for (int i = 0; i < report->members && report->rank[process] < 0; i++)
        if (report->member[i].process == process &&
            (rank < 0 || report->member[i].shown_rank < rank))
            rank = report->member[i].shown_rank;
    return rank;
}

static void add_process_environment(struct shared_values *values, const struct report *report,
                                    int process)
{
    struct environment_list environment;
    int rank = rank_of_process(report, process);
    values->failed |= environment_load(&environment, report->trace, process) != 0;
    for (int i = 0; i < environment.count && !values->failed && rank >= 0; i++) {
        struct shared_value *shared = find_shared(values, &environment.item[i]);
        values->failed = !shared || rankset_add(&shared->ranks, rank);
    }
    values->processes += environment.count && rank >= 0;
    if (environment.count && rank >= 0)
        values->failed |= rankset_add(&values->known, rank) != 0;
    environment_free(&environment);
}

static int compare_shared(const void *a, const void *b)
{
    const struct shared_value *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : rankset_next(&left->ranks, 0) - rankset_next(&right->ranks, 0);
}

static void load_shared(struct shared_values *values, const struct report *report)
{
    *values = (struct shared_values){0};
    for (int i = 0; i < trace_process_count(report->trace); i++)
        add_process_environment(values, report, i);
    if (values->count)
        qsort(values->item, (size_t)values->count, sizeof *values->item, compare_shared);
}

static void free_shared(struct shared_values *values)
{
    for (int i = 0; i < values->count; i++) {
        free(values->item[i].name);
        free(values->item[i].value);
        rankset_free(&values->item[i].ranks);
    }
    free(values->item);
    rankset_free(&values->known);
}

static void print_shared(const struct shared_values *values, const struct shared_value *shared,
                         struct page *page)
{
    char ranks[RANKS_BYTES];
    bool by_program = !strcmp(shared->set_by, "program");
    bool is_shared = rankset_count(&shared->ranks) >= values->processes;
    const char *value = *shared->value || !by_program ? shared->value : "removed";
    page_column(page, NAME_COLUMN);
    page_text(page, is_shared ? STYLE_PLAIN : STYLE_WARNING, shared->name);
    page->indent = VALUE_COLUMN;
    page_column(page, VALUE_COLUMN);
    page_format(page, STYLE_PLAIN, "%s%s", value, by_program ? " (by the program)" : "");
    if (!is_shared)
        page_format(page, STYLE_PLAIN, " on %s",
                    rankset_words(&shared->ranks, ranks, sizeof ranks));
    page_line(page);
    page->indent = 0;
}

/* The job's ranks without a record: they have no trace, or had not called NCCL. The
 * caller frees the set. */
static struct rankset unknown_ranks(const struct shared_values *values, const struct report *report)
{
    struct rankset unknown = {0};
    int ranks = 0;
    for (int i = 0; i < trace_process_count(report->trace); i++) {
        int32_t world_size = trace_process(report->trace, i)->world_size;
        ranks = world_size > ranks ? world_size : ranks;
    }
    for (int i = 0; i < report->members; i++)
        if (report->member[i].shown_rank >= ranks)
            ranks = report->member[i].shown_rank + 1;
    for (int rank = 0; rank < ranks; rank++)
        if (!rankset_has(&values->known, rank) && rankset_add(&unknown, rank))
            break; /* memory is short: the list is as long as it got */
    return unknown;
}

static void print_unknown(const struct shared_values *values, const struct report *report,
                          struct page *page)
{
    char ranks[RANKS_BYTES];
    struct rankset unknown = unknown_ranks(values, report);
    if (rankset_count(&unknown)) {
        page_column(page, NAME_COLUMN);
        page_format(page, STYLE_WARNING, "%s not known: no trace of its NCCL calls",
                    rankset_words(&unknown, ranks, sizeof ranks));
        page_line(page);
    }
    rankset_free(&unknown);
}

void report_print_environment(const struct report *report, struct page *page)
{
    struct shared_values values;
    load_shared(&values, report);
    page->indent = 0;
    page_words(page, STYLE_STRONG, "What the ranks ran in");
    page_line(page);
    if (!values.count)
        page_words(page, STYLE_PLAIN,
                   values.failed ? "  There is not enough memory to say."
                                 : "  The trace does not say it.");
    for (int i = 0; i < values.count; i++)
        print_shared(&values, &values.item[i], page);
    if (values.count)
        print_unknown(&values, report, page);
    page_gap(page);
    free_shared(&values);
}

int report_print_json_environment(const struct report *report, FILE *out)
{
    struct shared_values values;
    load_shared(&values, report);
    bool failed = values.failed;
    for (int i = 0; i < values.count && !failed; i++) {
        const struct shared_value *shared = &values.item[i];
        failed =
            json_print_line(json_pack("{s:s, s:o, s:o, s:s, s:o}", "schema",
                                      "ddpcheck.environment/1", "name", json_of_text(shared->name),
                                      "value", json_of_text(shared->value), "set_by",
                                      shared->set_by, "ranks", json_of_ranks(&shared->ranks)),
                            out) != 0;
    }
    struct rankset unknown = unknown_ranks(&values, report);
    if (values.count && !failed && rankset_count(&unknown))
        failed = json_print_line(json_pack("{s:s, s:o}", "schema", "ddpcheck.environment/1",
                                           "not_known", json_of_ranks(&unknown)),
                                 out) != 0;
    rankset_free(&unknown);
    free_shared(&values);
    return failed ? -1 : 0;
}
