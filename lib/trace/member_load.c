/* member_load.c: reads the table member_state. */
#include "lib/trace/member_load.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/array.h"
#include "lib/base/text.h"
#include "lib/trace/cursor.h"

struct loaded_members {
    struct member_state *member;
    int count;
};

static int add_member_row(struct loaded_members *members, const struct cursor *row,
                          struct error *err)
{
    if (!ARRAY_ADD(members->member, members->count))
        return error_memory(err, "can't read the ranks");
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
        return error_memory(err, "can't read the ranks");
    comm_name(member.comm, members->member[members->count].label);
    members->count++;
    return 0;
}

/* The program's names in place of those by the id. */
static int load_labels(struct loaded_members *members, struct trace *trace, struct error *err)
{
    struct cursor row = cursor_new(trace, "SELECT comm, label FROM comm_label", NULL, 0);
    int result;
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

static void drop_doubles(struct loaded_members *members)
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

static int load_member_rows(struct loaded_members *members, struct trace *trace, bool as_stored,
                            struct error *err)
{
#define MEMBERS_SQL(order)                                                                         \
    "SELECT m.comm, m.rank, shown_rank, nranks, m.process, device, issued, started, m.done, p2p, " \
    "destroyed, m.ended, \"where\", phase, last_call, stack, stack_is_address, since_ns, how, "    \
    "value FROM member_state m LEFT JOIN process_state USING(process) ORDER BY " order
    const char *sql = as_stored ? MEMBERS_SQL("m.rowid") : MEMBERS_SQL("comm, rank");
#undef MEMBERS_SQL
    struct cursor row = cursor_new(trace, sql, NULL, 0);
    int result;
    while ((result = cursor_next(&row, err)) == 1) {
        if (add_member_row(members, &row, err) == 0)
            continue;
        cursor_end(&row);
        return -1;
    }
    return result;
}

int member_states_load(struct trace *trace, bool as_stored, struct member_state **members,
                       int *count, struct error *err)
{
    struct loaded_members loaded = {0};
    int result = load_member_rows(&loaded, trace, as_stored, err);
    if (result == 0)
        result = load_labels(&loaded, trace, err);
    if (result == 0 && trace_database_count(trace) > 1 && loaded.count) {
        qsort(loaded.member, (size_t)loaded.count, sizeof *loaded.member, by_comm_and_rank);
        drop_doubles(&loaded);
    }
    *members = loaded.member;
    *count = loaded.count;
    return result;
}
