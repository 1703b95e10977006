/* timeline_groups.c: which ranks the groups of a timeline have. */
#include "lib/import/timeline_groups.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"

enum { LISTED_MAX = 1 << 20 };

static int compare_ranks(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

static int add_group_rank(struct timeline_group *group, int32_t rank)
{
    if (!ARRAY_ADD(group->rank, group->ranks))
        return -1;
    group->rank[group->ranks++] = rank;
    return 0;
}

/* Sorts them, each once. */
static void settle_group(struct timeline_group *group)
{
    int32_t kept = 0;
    if (group->ranks > 1)
        qsort(group->rank, (size_t)group->ranks, sizeof *group->rank, compare_ranks);
    for (int32_t i = 0; i < group->ranks; i++)
        if (!kept || group->rank[kept - 1] != group->rank[i])
            group->rank[kept++] = group->rank[i];
    group->ranks = kept;
}

static int add_range(struct timeline_group *group, long first, long last)
{
    if (first < 0 || last < first || last > INT32_MAX - 1 || last - first >= LISTED_MAX)
        return 0;
    for (long rank = first; rank <= last; rank++)
        if (add_group_rank(group, (int32_t)rank))
            return -1;
    return 0;
}

/* A list has nothing but numbers, ranges and what stands between them; one number alone is a name.
 */
static bool is_rank_list(const char *text)
{
    int numbers = 0;
    if (text[strspn(text, "0123456789-,;[]() ")])
        return false;
    for (; *text; text++)
        numbers += isdigit((unsigned char)*text) && !isdigit((unsigned char)text[1]);
    return numbers > 1;
}

static int read_rank_list(struct timeline_group *group, const char *text)
{
    while (*(text += strcspn(text, "0123456789"))) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (*end == '-' && isdigit((unsigned char)end[1]))
            last = strtol(end + 1, &end, 10);
        if (add_range(group, first, last))
            return -1;
        text = end;
    }
    return 0;
}

static int gather_ranks(const struct foreign_timeline *timeline, struct timeline_group *groups,
                        const bool *listed)
{
    for (size_t i = 0; i < timeline->rows; i++) {
        const struct foreign_row *row = &timeline->row[i];
        struct timeline_group *group = &groups[row->group];
        bool is_known = listed[row->group] || !*timeline->groups.by_index[row->group]->text ||
                        (group->ranks && group->rank[group->ranks - 1] == row->rank);
        if (is_known)
            continue;
        if (add_group_rank(group, row->rank))
            return -1;
        if (group->ranks % 65536 == 0)
            settle_group(group);
    }
    return 0;
}

struct timeline_group *timeline_groups_new(const struct foreign_timeline *timeline)
{
    uint32_t count = timeline->groups.count;
    struct timeline_group *groups = calloc(count ? count : 1, sizeof *groups);
    bool *listed = calloc(count ? count : 1, sizeof *listed);
    int result = groups && listed ? 0 : -1;
    for (uint32_t i = 0; i < count && !result; i++) {
        const char *name = timeline->groups.by_index[i]->text;
        listed[i] = is_rank_list(name);
        if (listed[i])
            result = read_rank_list(&groups[i], name);
    }
    if (!result)
        result = gather_ranks(timeline, groups, listed);
    for (uint32_t i = 0; groups && i < count; i++)
        settle_group(&groups[i]);
    free(listed);
    if (!result)
        return groups;
    timeline_groups_free(groups, groups ? count : 0);
    return NULL;
}

void timeline_groups_free(struct timeline_group *groups, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(groups[i].rank);
    free(groups);
}

int timeline_group_find(const struct timeline_group *group, int32_t rank)
{
    if (!group->ranks)
        return -1;
    const int32_t *found =
        bsearch(&rank, group->rank, (size_t)group->ranks, sizeof rank, compare_ranks);
    return found ? (int)(found - group->rank) : -1;
}
