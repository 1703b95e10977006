/* members.c: loads the members of all communicators and judges how each stands. */
#include "tui/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/trace/site.h"

enum { PLACE_SHORT = 20, PLACE_LONG = 40 };
enum { SINCE_LABELS = 6 }; /* the minor schema version that has comm_label */

void members_free(struct members *members)
{
    for (int i = 0; i < members->count; i++)
        member_state_free(&members->member[i]);
    free(members->member);
    free(members->comm);
    *members = (struct members){0};
}

static int take_row(struct members *members, int *capacity, const struct cursor *row,
                    struct error *err)
{
    if (members->count == *capacity) {
        int more = *capacity ? *capacity * 2 : 64;
        struct member_state *grown = reallocarray(members->member, (size_t)more, sizeof *grown);
        if (!grown)
            return error_set(err, "can't show the ranks: memory is short");
        members->member = grown;
        *capacity = more;
    }
    const struct member_state member = {
        .comm = (uint64_t)cursor_number(row, 0),
        .rank = (int)cursor_number(row, 1),
        .shown_rank = (int)cursor_number(row, 2),
        .nranks = (int)cursor_number(row, 3),
        .process = cursor_process(row, 4),
        .device = (int)cursor_number(row, 5),
        .issued = (uint64_t)cursor_number(row, 6),
        .started = (uint64_t)cursor_number(row, 7),
        .done = (uint64_t)cursor_number(row, 8),
        .p2p = (uint64_t)cursor_number(row, 9),
        .destroyed = cursor_number(row, 10),
        .ended = cursor_number(row, 11),
        .where = cursor_text(row, 12),
        .phase = cursor_text(row, 13),
        .last_call = cursor_text(row, 14),
        .stack = (uint64_t)cursor_number(row, 15),
        .stack_is_address = cursor_number(row, 16),
        .since_ns = (uint64_t)cursor_number(row, 17),
        .how = (enum end_how)cursor_number(row, 18),
        .value = (int32_t)cursor_number(row, 19),
    };
    if (member_state_copy(&members->member[members->count], &member) < 0)
        return error_set(err, "can't show the ranks: memory is short");
    comm_name(member.comm, members->member[members->count].label);
    members->count++;
    return 0;
}

/* The program's names in place of those by the id. */
static int load_labels(struct members *members, struct source *source, struct error *err)
{
    struct cursor row = cursor_new(source->trace, "SELECT comm, label FROM comm_label", NULL, 0);
    int result;
    row.since_minor = SINCE_LABELS;
    while ((result = cursor_next(&row, err)) == 1)
        for (int i = 0; i < members->count; i++)
            if (members->member[i].comm == (uint64_t)cursor_number(&row, 0))
                snprintf(members->member[i].label, sizeof members->member[i].label, "%s",
                         cursor_text(&row, 1));
    return result;
}

/* A member that one host has seen comes before the same one that another host has not. */
static int by_comm_and_rank(const void *left, const void *right)
{
    const struct member_state *a = left, *b = right;
    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank - b->rank;
    return (a->process < 0) - (b->process < 0);
}

static void drop_doubles(struct members *members)
{
    int kept = 0;
    for (int i = 0; i < members->count; i++) {
        const struct member_state *before = kept ? &members->member[kept - 1] : NULL;
        if (before && before->comm == members->member[i].comm &&
            before->rank == members->member[i].rank)
            member_state_free(&members->member[i]);
        else
            members->member[kept++] = members->member[i];
    }
    members->count = kept;
}

static void judge(struct tui_comm *comm, uint64_t now_ns)
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
        return error_set(err, "can't show the ranks: memory is short");
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
        judge(&members->comm[i], now_ns);
    qsort(members->comm, (size_t)members->comms, sizeof *members->comm, members_worst_first);
    return 0;
}

int members_load(struct members *members, struct source *source, struct error *err)
{
    static const char sql[] =
        "SELECT m.comm, m.rank, shown_rank, nranks, m.process, device, issued, started, m.done, "
        "p2p, "
        "destroyed, m.ended, \"where\", phase, last_call, stack, stack_is_address, since_ns, how, "
        "value "
        "FROM member_state m LEFT JOIN process_state USING(process) ORDER BY comm, rank";
    struct cursor row = cursor_new(source->trace, sql, NULL, 0);
    int capacity = 0, result;
    *members = (struct members){0};
    while ((result = cursor_next(&row, err)) == 1) {
        if (take_row(members, &capacity, &row, err) == 0)
            continue;
        cursor_end(&row);
        result = -1;
        break;
    }
    if (result == 0)
        result = load_labels(members, source, err);
    if (result == 0 && trace_database_count(source->trace) > 1 && members->count) {
        qsort(members->member, (size_t)members->count, sizeof *members->member, by_comm_and_rank);
        drop_doubles(members);
    }
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
