/* kineto_group.c: keeps the process groups of one Kineto trace. */
#include "lib/import/kineto_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"

static int make_group(struct kineto_groups *groups, struct kineto_group *group,
                      const struct kineto_event *event)
{
    group->name = strdup(event->group);
    group->ranks = strdup(event->ranks);
    group->size = event->number[KINETO_SIZE];
    group->start = event->number[KINETO_START];
    group->stride = event->number[KINETO_STRIDE];
    group->said = group->seq = KINETO_UNKNOWN;
    group->member = -1;
    group->index = groups->count;
    bool has_room = ARRAY_ADD(groups->by_index, groups->count);
    return group->name && group->ranks && has_room ? 0 : -1;
}

static void group_free(struct kineto_group *group)
{
    free(group->key);
    free(group->name);
    free(group->ranks);
    free(group);
}

struct kineto_group *kineto_group_of(struct kineto_groups *groups, const struct kineto_event *event)
{
    /* Names alone are counters or hashes that jobs with subgroups may use again on other ranks. */
    char key[KINETO_NAME_MAX + 4096], *text = key;
    int length = snprintf(key, sizeof key, "%s of %lld: %s", event->group,
                          (long long)event->number[KINETO_SIZE], event->ranks);
    if (length >= (int)sizeof key &&
        asprintf(&text, "%s of %lld: %s", event->group, (long long)event->number[KINETO_SIZE],
                 event->ranks) < 0)
        return NULL;
    struct kineto_group *group;
    HASH_FIND_STR(groups->table, text, group);
    if (!group && groups->count < KINETO_GROUPS_MAX && (group = calloc(1, sizeof *group))) {
        group->key = strdup(text);
        if (!group->key || make_group(groups, group, event)) {
            group_free(group);
            group = NULL;
        } else {
            groups->by_index[groups->count++] = group;
            HASH_ADD_KEYPTR(hh, groups->table, group->key, strlen(group->key), group);
        }
    }
    if (text != key)
        free(text);
    if (group && event->collective &&
        !kind_has(event->collective->api, KIND_ROOTED | KIND_TO_PEER) &&
        event->number[KINETO_RANK] >= 0)
        group->said = event->number[KINETO_RANK];
    return group;
}

int kineto_group_config(struct kineto_groups *groups, const char *name, const char *ranks)
{
    struct kineto_config *config;
    HASH_FIND_STR(groups->config, name, config);
    if (config)
        return 0;
    config = calloc(1, sizeof *config);
    if (!config || !(config->name = strdup(name)) || !(config->ranks = strdup(ranks))) {
        if (config)
            free(config->name);
        free(config);
        return -1;
    }
    HASH_ADD_KEYPTR(hh, groups->config, config->name, strlen(config->name), config);
    return 0;
}

/* Place of `rank` in a list; -1 if it is not there, or behind "..." but not at the end. */
static int place_in(const char *ranks, int64_t rank, int64_t size)
{
    int place = 0;
    bool cut = false;
    while (*ranks) {
        char *end;
        if (*ranks == '.') {
            cut = true;
            ranks += strcspn(ranks, ",");
        } else {
            long long value = strtoll(ranks, &end, 10);
            bool last = !*end;
            if (end == ranks)
                return -1;
            if (value == rank && (!cut || (last && size > 0)))
                return cut ? (int)size - 1 : place;
            place++;
            ranks = end;
        }
        ranks += *ranks == ',';
    }
    return -1;
}

int kineto_group_own_rank(const struct kineto_groups *groups, const struct kineto_group *group,
                          int64_t rank)
{
    if (group->said >= 0 && group->said < INT32_MAX)
        return (int)group->said;
    if (rank < 0)
        return -1;
    int place = place_in(group->ranks, rank, group->size);
    if (place >= 0)
        return place;
    int64_t distance = rank - group->start;
    if (group->start >= 0 && group->stride > 0 && distance >= 0 && distance % group->stride == 0 &&
        distance / group->stride < group->size)
        return (int)(distance / group->stride);
    struct kineto_config *config;
    HASH_FIND_STR(groups->config, group->name, config);
    return config ? place_in(config->ranks, rank, group->size) : -1;
}

void kineto_groups_free(struct kineto_groups *groups)
{
    HASH_CLEAR(hh, groups->table);
    for (int i = 0; i < groups->count; i++)
        group_free(groups->by_index[i]);
    free(groups->by_index);
    struct kineto_config *config, *next;
    HASH_ITER(hh, groups->config, config, next) {
        HASH_DEL(groups->config, config);
        free(config->name);
        free(config->ranks);
        free(config);
    }
    *groups = (struct kineto_groups){0};
}
