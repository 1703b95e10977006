/* unfinished.c: the first operation of a communicator that some dump shows as not done. */
#include "analyzer/checks/hang/unfinished.h"

#include "analyzer/model/process.h"
#include "analyzer/model/progress.h"
#include "lib/trace/lacks.h"

bool unfinished_is_known(const struct member *member)
{
    return member->process->info.lacks && !(member->process->info.lacks & LACKS_STATE) &&
           member->has_progress && member->next;
}

bool unfinished_find(const struct comm *comm, struct unfinished *found)
{
    uint64_t least = UINT64_MAX, most = 0, issued = UINT64_MAX;
    bool all_known = comm->nranks > 0 && comm->members >= (uint32_t)comm->nranks;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *member = comm->member[i];
        if (!unfinished_is_known(member)) {
            all_known = false;
            continue;
        }
        if (member->done > most)
            most = member->done;
        if (member->next < issued)
            issued = member->next;
        if (member->done < member->next && member->done < least)
            least = member->done;
    }
    *found = (struct unfinished){least, least < most, all_known && issued > least};
    return least != UINT64_MAX;
}

struct sought {
    const struct member *member;
    uint64_t number;
    const struct pending *found;
};

static int compare_sought(void *context, const struct pending *pending)
{
    struct sought *sought = context;
    if (pending->member != sought->member || pending->number < sought->number || pending->channel)
        return 0;
    if (!sought->found || pending->number < sought->found->number)
        sought->found = pending;
    return pending->number == sought->number;
}

const struct pending *unfinished_call(const struct member *member, uint64_t number)
{
    struct sought sought = {.member = member, .number = number};
    progress_visit_first(member->process, UINT32_MAX, compare_sought, &sought);
    return sought.found;
}
