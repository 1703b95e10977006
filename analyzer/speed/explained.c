/* explained.c: slow ranks that are none, but victims of a slow link.
 *
 * A slow link holds up all members of its communicator alike. Where kernels are not recorded, it is
 * not known which of its transfers are exposed, so they count as the members' own time. */
#include <stdlib.h>

#include "analyzer/speed/slowdown.h"

enum { LINK_TIMES = 2 }; /* as much as the link, loses a member at most */

static bool is_member(const struct judged *judged, const struct comm *comm,
                      const struct speed_rank *rank)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (speed_rank_of(judged->speed, comm->member[i]) == rank)
            return true;
    return false;
}

/* All of its ranks are members, and nothing but times of operations shows that they are slow. */
static bool may_be_victims(const struct judged *judged, const struct slowdown *link,
                           const struct slowdown *slowdown)
{
    bool may_be = slowdown->kind < SLOW_LINK && slowdown->lost <= LINK_TIMES * link->lost;
    for (uint32_t i = 0; i < slowdown->ranks && may_be; i++)
        may_be = !slowdown->rank[i]->shows_kernels &&
                 is_member(judged, link->comm, slowdown->rank[i]);
    return may_be;
}

static bool are_all_victims(const struct judged *judged, const struct slowdown *link,
                            const struct slowdowns *found)
{
    uint32_t ranks = 0;
    for (uint32_t i = 0; i < found->count; i++)
        if (may_be_victims(judged, link, &found->slowdown[i]))
            ranks += found->slowdown[i].ranks;
    return ranks && ranks == link->comm->members;
}

static void drop_victims(const struct judged *judged, const struct slowdown *link,
                         struct slowdowns *found)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < found->count; i++) {
        if (may_be_victims(judged, link, &found->slowdown[i]))
            free(found->slowdown[i].rank);
        else
            found->slowdown[kept++] = found->slowdown[i];
    }
    found->count = kept;
}

void drop_explained_by_links(const struct judged *judged, struct slowdowns *found)
{
    for (uint32_t i = 0; i < found->count; i++) {
        const struct slowdown link = found->slowdown[i];
        if (link.kind != SLOW_LINK || !are_all_victims(judged, &link, found))
            continue;
        drop_victims(judged, &link, found);
        i = 0; /* the list is shorter, from before this one */
    }
}
