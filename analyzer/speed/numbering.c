/* numbering.c: the iteration of each operation, once it is known how many operations are one. */
#include "analyzer/speed/ranks.h"

bool speed_is_counted(const struct speed_rank *rank, const struct speed_operation *operation)
{
    if (operation->number > SPEED_NUMBER_MOST)
        return false;
    if (rank->marker)
        return operation->comm->comm == rank->marker && operation->peer < 0;
    return rank->member && operation->comm->comm == rank->member->comm &&
           operation->peer == rank->round_peer &&
           (operation->peer < 0 || operation->sends == rank->round_sends);
}

/* Behind the last operation of a marker the next iteration begins, with work: a barrier or the mean
 * of the loss may end this one. */
uint64_t speed_round_number(struct speed_rank *rank, const struct speed_operation *operation)
{
    if (!speed_is_counted(rank, operation))
        return rank->marker && !speed_is_work(operation) ? rank->counted : rank->following;
    uint64_t number = operation->number + rank->shift;
    rank->following = (number + (rank->marker != NULL)) / rank->round;
    return number / rank->round;
}

static const struct speed_operation *first_counted(struct speed_rank *rank)
{
    for (uint64_t i = 0; i < rank->operations; i++) {
        const struct speed_operation *operation =
            speed_operation_find(rank, rank->first_operation + i);
        if (speed_is_counted(rank, operation))
            return operation;
    }
    return NULL;
}

void speed_number_held(struct speed_rank *rank, uint64_t round, size_t last)
{
    uint64_t newest = 0;
    const struct speed_operation *first = first_counted(rank);
    rank->round = round;
    if (rank->marker && first)
        rank->shift = round - 1 - (first->number + last) % round;
    if (first)
        rank->begun = (first->number + rank->shift) / round;
    rank->closed = rank->following = rank->counted = rank->begun;
    for (uint64_t i = 0; i < rank->operations; i++) {
        struct speed_operation *operation = speed_operation_find(rank, rank->first_operation + i);
        uint64_t number = speed_round_number(rank, operation);
        newest = number > newest ? number : newest;
        operation->iteration = rank->counted = newest;
    }
    rank->newest = newest;
    for (uint32_t i = 0; i < rank->spans; i++) {
        const struct speed_operation *next = speed_operation_find(rank, rank->span[i].iteration);
        rank->span[i].iteration = next ? next->iteration : newest;
    }
}
