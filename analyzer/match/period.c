/* period.c: finds the period in which the operations of a communicator repeat. */
#include "analyzer/match/period.h"

#include <stddef.h>

static uint64_t seen_at(const struct period *period, uint64_t number)
{
    return period->seen[number % PERIOD_SEEN];
}

static bool is_repeated(const struct period *period, uint32_t round, uint64_t last)
{
    uint64_t need = (uint64_t)(ROUNDS_PROOF - 1) * round;
    if (last + 1 < period->first + need + round)
        return false;
    for (uint64_t i = 0; i < need; i++)
        if (seen_at(period, last - i) != seen_at(period, last - i - round))
            return false;
    return true;
}

static void lock(struct period *period, uint32_t round, uint64_t last)
{
    uint64_t begin = last + 1 - (uint64_t)ROUNDS_PROOF * round;
    while (begin > period->first &&
           seen_at(period, begin - 1) == seen_at(period, begin - 1 + round))
        begin--;
    struct round found = {.operations = round, .begin = begin, .until = last + 1};
    for (uint32_t i = 0; i < round; i++)
        found.hash[i] = seen_at(period, begin + i);
    period->locked = true;
    period->round[1] = period->round[0];
    period->round[0] = found;
}

void period_feed(struct period *period, uint64_t number, uint64_t hash)
{
    if (number < period->next)
        return;
    if (number != period->next) {
        period->first = number;
        period->locked = false;
        period->equal = 0;
    }
    period->equal = period->equal && seen_at(period, number - 1) == hash ? period->equal + 1 : 1;
    if (number - period->first >= PERIOD_SEEN)
        period->first = number + 1 - PERIOD_SEEN;
    period->seen[number % PERIOD_SEEN] = hash;
    period->next = number + 1;
    struct round *now = &period->round[0];
    if (period->locked && now->hash[(number - now->begin) % now->operations] == hash) {
        now->until = number + 1;
        return;
    }
    period->locked = false;
    uint64_t shortest = period->equal < ROUND_MAX ? period->equal + 1 : ROUND_MAX + 1;
    for (uint32_t round = shortest < 2 ? 2 : (uint32_t)shortest;
         round <= ROUND_MAX && number >= period->first + round; round++)
        if (seen_at(period, number - round) == hash && is_repeated(period, round, number)) {
            lock(period, round, number);
            return;
        }
}

const struct round *period_place(const struct period *period, uint64_t number, uint32_t *place)
{
    for (int i = 0; i < 2; i++) {
        const struct round *round = &period->round[i];
        if (!round->operations ||
            number < round->begin + (uint64_t)ROUNDS_PROOF * round->operations ||
            number > round->until)
            continue;
        *place = (uint32_t)((number - round->begin) % round->operations);
        return round;
    }
    return NULL;
}
