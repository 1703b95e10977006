/* ranks_fold.c: where there are many processes, those in one state are one row, the worst first. */
#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/base/moment.h"
#include "lib/base/name_ranges.h"
#include "lib/base/rankset.h"
#include "tui/ranks.h"

/* A process as one of those that are in the same state. */
struct fold_item {
    uint64_t key; /* a hash of the state */
    int index;
};

static uint64_t hash_state_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = hash_word(hash, (unsigned char)*text);
    return hash_word(hash, 0);
}

uint64_t ranks_fold_key(const struct process_info *info, const struct process_view *process)
{
    const struct member_state *member = process->member;
    const int state[] = {process->ended,         process->how,      process->value,
                         process->out_of_memory, info->restart > 0, process->lost > 0,
                         process->is_missing};
    uint64_t key = 0;
    for (size_t i = 0; i < sizeof state / sizeof *state; i++)
        key = hash_word(key, (uint64_t)state[i]);
    if (!member)
        return key;
    return hash_state_text(hash_state_text(key, member->where), member->phase);
}

static int by_fold_key(const void *left, const void *right)
{
    const struct fold_item *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->index - b->index;
}

/* Processes in one state, as a stretch of the items. */
struct fold_group {
    const struct fold_item *item;
    int count;
    enum tone tone;
    bool is_missing;
};

/* Those that others wait for, then the worst state, then the fewest: outliers. */
static int by_fold_rank(const void *left, const void *right)
{
    const struct fold_group *a = left, *b = right;
    if (a->is_missing != b->is_missing)
        return b->is_missing - a->is_missing;
    if (a->tone != b->tone)
        return a->tone > b->tone ? -1 : 1;
    return a->count != b->count ? a->count - b->count : a->item->index - b->item->index;
}

static enum tone fold_tone(const struct process_info *info, const struct process_view *process)
{
    char state[64];
    enum tone tone = ranks_state_text(info, process, state, sizeof state);
    return process->lost && tone < TONE_WARNING ? TONE_WARNING : tone;
}

/* On which hosts they are, as ranges; how many they are where no host is known. */
static void set_hosts(struct source *source, const struct fold_group *group, struct row *row)
{
    const char **name = calloc((size_t)group->count, sizeof *name);
    int names = 0;
    for (int i = 0; name && i < group->count; i++) {
        const struct process_info *info = trace_process(source->trace, group->item[i].index);
        if (info->host[0])
            name[names++] = info->host;
    }
    names = names ? names_sort(name, names) : 0;
    char *hosts = names ? name_ranges(name, names) : NULL;
    if (hosts)
        row_set(row, CELL_HOST, TONE_PLAIN, "%s", hosts);
    else
        row_set(row, CELL_HOST, TONE_PLAIN, "%d processes", group->count);
    free(hosts);
    free(name);
}

static void add_fold_group(struct source *source, const struct query *query,
                           const struct fold_group *group, const struct process_view *process,
                           struct rows *rows)
{
    struct rankset ranks = {0};
    char text[256], late[64];
    uint64_t most_ns = 0, lost = 0;
    int latest = -1;
    for (int i = 0; i < group->count; i++) {
        int index = group->item[i].index, rank = process[index].rank;
        if (rank >= 0)
            rankset_add(&ranks, rank);
        lost += process[index].lost;
        if (ranks_late_ns(&process[index]) <= most_ns)
            continue;
        most_ns = ranks_late_ns(&process[index]);
        latest = rank;
    }
    int first = group->item->index;
    struct row *row = rows_add(rows, group->item->key, 0);
    ranks_set_ranks(query, &process[first], rankset_brief(&ranks, text, sizeof text), row);
    set_hosts(source, group, row);
    if (most_ns)
        row_set(row, CELL_LATE, TONE_PLAIN, "%s (%d)", moment_duration(most_ns, late, sizeof late),
                latest);
    if (lost)
        row_set(row, CELL_LOST, TONE_WARNING, "%llu", (unsigned long long)lost);
    ranks_set_cells(source, query, trace_process(source->trace, first), &process[first], rows, row);
    if (row)
        row->target = (struct target){.view = VIEW_RANKS, .process = -1, .number = (uint64_t)first};
    rankset_free(&ranks);
}

/* The groups among the items, which are in the order of their keys. */
static int find_fold_groups(struct source *source, const struct fold_item *item, int count,
                            const struct process_view *process, struct fold_group *group)
{
    int groups = 0;
    for (int i = 0; i < count; i += group[groups++].count) {
        int index = item[i].index, end = i + 1;
        while (end < count && item[end].key == item[i].key)
            end++;
        group[groups] = (struct fold_group){
            &item[i], end - i, fold_tone(trace_process(source->trace, index), &process[index]),
            process[index].is_missing};
    }
    qsort(group, (size_t)groups, sizeof *group, by_fold_rank);
    return groups;
}

int ranks_add_folded(struct source *source, const struct query *query, const int *order,
                     const struct process_view *process, struct rows *rows, struct error *err)
{
    int count = trace_process_count(source->trace);
    struct fold_item *item = calloc((size_t)count, sizeof *item);
    struct fold_group *group = calloc((size_t)count, sizeof *group);
    int groups = 0;
    for (int i = 0; item && group && i < count; i++)
        item[i] = (struct fold_item){
            ranks_fold_key(trace_process(source->trace, order[i]), &process[order[i]]), order[i]};
    if (item && group) {
        qsort(item, (size_t)count, sizeof *item, by_fold_key);
        groups = find_fold_groups(source, item, count, process, group);
    }
    for (int i = 0; i < groups; i++)
        if (group[i].count > 1)
            add_fold_group(source, query, &group[i], process, rows);
        else
            ranks_add_process(source, query, group[i].item->index, &process[group[i].item->index],
                              rows);
    bool is_short = !item || !group;
    free(item);
    free(group);
    return is_short ? error_memory(err, "can't show the ranks") : 0;
}
