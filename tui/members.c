/* members.c: loads the members of all communicators and judges how each stands. */
#include "tui/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/trace/member_load.h"
#include "lib/trace/site.h"
#include "tui/view.h"

enum { PLACE_SHORT = 20, PLACE_LONG = 40 };
void members_free(struct members *members)
{
    for (int i = 0; i < members->count; i++)
        member_state_free(&members->member[i]);
    free(members->member);
    free(members->comm);
    *members = (struct members){0};
}

static void judge_member(struct tui_comm *comm, uint64_t now_ns)
{
    members_stand(comm->member, comm->members, now_ns);
    comm->worst = STANDS_OVER;
    for (int i = 0; i < comm->members; i++) {
        const struct member_state *member = &comm->member[i];
        comm->most_issued = member->issued > comm->most_issued ? member->issued : comm->most_issued;
        comm->count[member->standing]++;
        comm->worst = member->standing < comm->worst ? member->standing : comm->worst;
    }
}

static int members_worst_first(const void *left, const void *right)
{
    const struct tui_comm *a = left, *b = right;
    if (a->worst != b->worst)
        return (int)a->worst - (int)b->worst;
    if (a->most_issued != b->most_issued)
        return a->most_issued > b->most_issued ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static int find_comms(struct members *members, uint64_t now_ns, struct error *err)
{
    members->comm = calloc((size_t)members->count + 1, sizeof *members->comm);
    if (!members->comm)
        return error_memory(err, "can't show the ranks");
    for (int i = 0; i < members->count; i++) {
        struct member_state *member = &members->member[i];
        if (i == 0 || member->comm != member[-1].comm)
            members->comm[members->comms++] =
                (struct tui_comm){.id = member->comm, .member = member};
        struct tui_comm *comm = &members->comm[members->comms - 1];
        comm->members++;
        comm->nranks = member->nranks > comm->nranks ? member->nranks : comm->nranks;
    }
    for (int i = 0; i < members->comms; i++)
        judge_member(&members->comm[i], now_ns);
    qsort(members->comm, (size_t)members->comms, sizeof *members->comm, members_worst_first);
    return 0;
}

int members_load(struct members *members, struct source *source, struct error *err)
{
    *members = (struct members){0};
    int result = member_states_load(source->trace, false, &members->member, &members->count, err);
    if (result == 0)
        result = find_comms(members, source->now_ns, err);
    if (result < 0)
        members_free(members);
    return result;
}

static int by_rank(const void *rank, const void *member)
{
    return *(const int *)rank - ((const struct member_state *)member)->rank;
}

const struct member_state *members_rank(const struct tui_comm *comm, int rank)
{
    return bsearch(&rank, comm->member, (size_t)comm->members, sizeof *comm->member, by_rank);
}

const struct tui_comm *members_comm(const struct members *members, uint64_t comm, int step)
{
    int index = 0;
    if (members->comms == 0)
        return NULL;
    for (int i = 0; i < members->comms; i++)
        if (members->comm[i].id == comm)
            index = i;
    return &members->comm[(index + step % members->comms + members->comms) % members->comms];
}

void member_set_place(struct source *source, const struct member_state *member, struct rows *rows,
                      struct row *row)
{
    struct frame frame[SITE_FRAMES_MAX];
    int count =
        site_frames(source->trace, member->process, member->stack, member->stack_is_address, frame);
    int shown = site_shown_frame(frame, count);
    if (shown >= 0)
        rows_set_frame(rows, row, &frame[shown]);
}

char *member_site(struct source *source, const struct member_state *member, bool wide, char *text,
                  size_t bytes)
{
    struct frame frame[SITE_FRAMES_MAX];
    char function[sizeof frame->function + 8], place[sizeof frame->file];
    *text = '\0';
    int count =
        site_frames(source->trace, member->process, member->stack, member->stack_is_address, frame);
    int shown = site_shown_frame(frame, count);
    if (shown < 0)
        return text;
    frame_function(&frame[shown], function, sizeof function);
    frame_place(&frame[shown], wide ? PLACE_LONG : PLACE_SHORT, place, sizeof place);
    if (wide || !*place)
        snprintf(text, bytes, "%s%s%s", place, *place ? " " : "", function);
    else
        snprintf(text, bytes, "%s", place);
    return text;
}
