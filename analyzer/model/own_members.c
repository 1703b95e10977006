/* own_members.c: the members of communicators that a process is. */
#include "analyzer/model/own_members.h"

#include "lib/base/invariant.h"

struct member *own_member_first(const struct process *process, uint64_t comm)
{
    struct member *member;
    TABLE_FIND(process->own.table, &comm, member);
    return member;
}

struct member *own_member(const struct process *process, uint64_t comm, int rank)
{
    struct member *member = own_member_first(process, comm);
    while (member && rank >= 0 && member->rank != rank && process->several_ranks)
        member = member->own_next;
    return member;
}

static void link_first(struct process *process, struct member *member)
{
    member->process_prev = NULL;
    member->process_next = process->members;
    *(process->members ? &process->members->process_prev : &process->own.last) = member;
    process->members = member;
}

static void unlink_member(struct process *process, struct member *member)
{
    invariant(process->members && process->own.last, "a member's process lists it");
    invariant(member->process_prev ? member->process_prev->process_next == member
                                   : process->members == member,
              "the members of a process are linked both ways");
    *(member->process_prev ? &member->process_prev->process_next : &process->members) =
        member->process_next;
    *(member->process_next ? &member->process_next->process_prev : &process->own.last) =
        member->process_prev;
}

int own_member_add(struct process *process, struct member *member)
{
    struct member *first = own_member_first(process, member->comm_id);
    invariant(!member->process, "a member is of one process");
    if (!process->member_count++) {
        process->own.first_rank = member->rank;
        process->own.first_order = member->comm->order;
    }
    if (process->own.first_order > member->comm->order)
        process->own.first_order = member->comm->order;
    member->process = process;
    link_first(process, member);
    if (first) {
        process->several_ranks = true;
        member->own_next = first->own_next;
        first->own_next = member;
        return 0;
    }
    TABLE_ADD(process->own.table, comm_id, member);
    return TABLE_ADDED(member) ? 0 : -1;
}

void own_member_remove(struct member *member)
{
    struct process *process = member->process;
    unlink_member(process, member);
    if (TABLE_ADDED(member))
        HASH_DEL(process->own.table, member);
    member->hh.tbl = NULL;
    member->own_next = member->process_next = member->process_prev = NULL;
}

void own_member_put_last(struct member *member)
{
    struct process *process = member->process;
    if (process->own.last == member)
        return;
    unlink_member(process, member);
    member->process_next = NULL;
    member->process_prev = process->own.last;
    process->own.last->process_next = member;
    process->own.last = member;
}
