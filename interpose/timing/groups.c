/* groups.c: a ring of groups whose readers notice that what they read was overwritten. */
#include "interpose/timing/groups.h"

#include <string.h>

#define GROUP_WRITTEN UINT64_MAX

/* Who sees one of the words sees that the group is being written. */
bool timed_groups_put(struct timed_groups *groups, uint64_t number,
                      const struct timed_launches *launches)
{
    struct timed_group *group = &groups->group[number % GROUP_RING];
    uint64_t word[GROUP_WORDS] = {0};
    uint64_t before = atomic_load_explicit(&group->number, memory_order_relaxed);
    if (before > number || !atomic_compare_exchange_strong(&group->number, &before, GROUP_WRITTEN))
        return false;
    memcpy(word, launches, sizeof *launches);
    for (int i = 0; i < GROUP_WORDS; i++)
        atomic_store_explicit(&group->word[i], word[i], memory_order_release);
    atomic_store_explicit(&group->number, number + 1, memory_order_release);
    return true;
}

bool timed_groups_find(struct timed_groups *groups, uint64_t number,
                       struct timed_launches *launches)
{
    struct timed_group *group = &groups->group[number % GROUP_RING];
    uint64_t word[GROUP_WORDS];
    if (atomic_load_explicit(&group->number, memory_order_acquire) != number + 1)
        return false;
    for (int i = 0; i < GROUP_WORDS; i++)
        word[i] = atomic_load_explicit(&group->word[i], memory_order_acquire);
    memcpy(launches, word, sizeof *launches);
    return atomic_load_explicit(&group->number, memory_order_relaxed) == number + 1;
}
