/* member_state.c: how the members of a communicator stand beside each other. */
#include "lib/trace/member_state.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/trace/trace.h"

static const uint64_t waited_ns = 1000000000; /* a member that is behind for longer is missing */

/* What the rule needs of all members of a communicator. */
struct member_peers {
    uint64_t most_issued;
    bool waited;     /* somebody has waited for long in the foremost operation */
    bool going_on;   /* a process of a member is alive */
    bool all_failed; /* every process ended badly: that distinguishes the members no more */
};

const char *standing_name(enum standing standing)
{
    static const char *const names[STANDINGS] = {
        [STANDS_MISSING] = "missing",
        [STANDS_EXITED] = "exited",
        [STANDS_UNSEEN] = "without a trace",
        [STANDS_BEHIND] = "behind",
        [STANDS_ISSUED] = "issued",
        [STANDS_STARTED] = "started",
        [STANDS_DONE] = "done",
        [STANDS_OVER] = "finished",
    };
    return names[standing];
}

char *last_number_text(uint64_t count, char text[LAST_NUMBER_BYTES])
{
    snprintf(text, LAST_NUMBER_BYTES, "-");
    if (count)
        snprintf(text, LAST_NUMBER_BYTES, "#%" PRIu64, count - 1);
    return text;
}

/* Launchers stop what is left of a job with SIGTERM, people with SIGINT. */
static bool ended_badly(const struct member_state *member)
{
    if (!member->ended)
        return false;
    if (member->how == END_SIGNAL)
        return member->value != SIGTERM && member->value != SIGINT;
    return member->how == END_UNKNOWN || member->value != 0;
}

static struct member_peers compare_peers(const struct member_state *member, int count,
                                         uint64_t now_ns)
{
    struct member_peers peers = {.all_failed = true};
    for (int i = 0; i < count; i++) {
        if (member[i].issued > peers.most_issued)
            peers.most_issued = member[i].issued;
        peers.going_on |= member[i].process >= 0 && !member[i].ended;
        peers.all_failed &= ended_badly(&member[i]);
    }
    for (int i = 0; i < count; i++)
        peers.waited |= member[i].issued == peers.most_issued &&
                        member[i].done < member[i].issued && member[i].since_ns &&
                        now_ns > member[i].since_ns + waited_ns;
    return peers;
}

static enum standing find_standing(const struct member_state *member,
                                   const struct member_peers *peers)
{
    bool through = member->destroyed ||
                   (member->done == peers->most_issued && peers->most_issued > 0);
    bool failed = ended_badly(member);
    if (member->process < 0)
        return STANDS_UNSEEN;
    if ((failed && !peers->all_failed) || (member->ended && !through && peers->going_on))
        return STANDS_EXITED;
    if (member->destroyed)
        return STANDS_OVER;
    if (member->issued < peers->most_issued)
        return peers->waited || !peers->going_on ? STANDS_MISSING : STANDS_BEHIND;
    if (member->started < member->issued)
        return STANDS_ISSUED;
    if (member->done < member->issued)
        return STANDS_STARTED;
    if (failed)
        return STANDS_EXITED;
    return member->ended ? STANDS_OVER : STANDS_DONE;
}

void members_stand(struct member_state *member, int count, uint64_t now_ns)
{
    const struct member_peers peers = compare_peers(member, count, now_ns);
    for (int i = 0; i < count; i++) {
        member[i].standing = find_standing(&member[i], &peers);
        member[i].behind = peers.most_issued - member[i].issued;
    }
}

int member_state_copy(struct member_state *to, const struct member_state *from)
{
    *to = *from;
    to->where = strdup(from->where);
    to->phase = strdup(from->phase);
    to->last_call = strdup(from->last_call);
    to->site = from->site ? strdup(from->site) : NULL;
    if (to->where && to->phase && to->last_call && (to->site || !from->site))
        return 0;
    member_state_free(to);
    return -1;
}

void member_state_free(struct member_state *member)
{
    free((char *)member->where);
    free((char *)member->phase);
    free((char *)member->last_call);
    free((char *)member->site);
    *member = (struct member_state){.process = -1};
}

int *member_process_ranks(const struct member_state *member, int count, struct trace *trace)
{
    const int several = -2;
    int processes = trace_process_count(trace);
    int *rank = malloc(((size_t)processes + 1) * sizeof *rank);
    for (int i = 0; rank && i < processes; i++)
        rank[i] = -1;
    for (int i = 0; rank && i < count; i++) {
        int process = member[i].process, shown = member[i].shown_rank;
        if (process < 0 || process >= processes || shown < 0)
            continue;
        rank[process] = rank[process] == -1 || rank[process] == shown ? shown : several;
    }
    for (int i = 0; rank && i < processes; i++)
        if (trace_process(trace, i)->rank >= 0 || rank[i] == several)
            rank[i] = trace_process(trace, i)->rank;
    return rank;
}
