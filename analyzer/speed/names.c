/* names.c: the iteration of each operation: by the program's numbers, or, once it is known how many
 * operations are one, by count.
 *
 * Iterations are counted as they come, and keep the numbers that the program gives them.
 *
 * A profiler may record each tenth iteration, or three of every twenty. What it leaves out is no
 * iteration of 0 ms: the recorded ones follow each other, and a rate is per recorded iteration.
 * Numbers that follow each other are one run. */
#include "analyzer/model/array.h"
#include "analyzer/speed/ranks.h"
#include "analyzer/speed/speed.h"
#include "lib/base/invariant.h"

struct speed_numbers {
    uint64_t number, iteration, count; /* of the first one; how many follow each other */
};

/* By the program's numbers, or by iterations. */
enum run_key { BY_NUMBER, BY_ITERATION };

/* The last run that begins with this value or a smaller one; 0: none does. */
static uint32_t find_run(const struct speed *speed, enum run_key key, uint64_t value)
{
    uint32_t low = 0, high = speed->runs;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct speed_numbers *run = &speed->numbers[middle];
        if ((key == BY_NUMBER ? run->number : run->iteration) <= value)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint64_t add_rank_run(struct speed *speed, uint64_t number)
{
    const struct speed_numbers *last = speed->runs ? &speed->numbers[speed->runs - 1] : NULL;
    uint64_t iteration = last ? last->iteration + last->count : 0;
    struct speed_numbers *grown =
        array_room(speed->numbers, sizeof *grown, speed->runs, &speed->run_capacity, 4);
    if (!grown)
        return UINT64_MAX;
    speed->numbers = grown;
    grown[speed->runs++] = (struct speed_numbers){number, iteration, 1};
    return iteration;
}

uint64_t speed_count_number(struct speed *speed, uint64_t number)
{
    struct speed_numbers *last = speed->runs ? &speed->numbers[speed->runs - 1] : NULL;
    if (!last || number > last->number + last->count)
        return add_rank_run(speed, number);
    if (number == last->number + last->count)
        last->count++;
    const struct speed_numbers *run = &speed->numbers[find_run(speed, BY_NUMBER, number)];
    uint64_t behind = number > run->number ? number - run->number : 0;
    /* What only this rank recorded is part of the previous iteration. */
    return run->iteration + (behind < run->count ? behind : run->count - 1);
}

uint64_t speed_number(const struct speed *speed, uint64_t iteration)
{
    if (!speed->runs)
        return iteration;
    const struct speed_numbers *run = &speed->numbers[find_run(speed, BY_ITERATION, iteration)];
    invariant(iteration >= run->iteration, "the first run begins with the first iteration");
    return run->number + (iteration - run->iteration);
}

bool speed_follows_gap(const struct speed *speed, uint64_t iteration)
{
    if (!speed->runs || !iteration)
        return false;
    return speed->numbers[find_run(speed, BY_ITERATION, iteration)].iteration == iteration;
}

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
