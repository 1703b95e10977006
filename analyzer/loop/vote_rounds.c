/* vote_rounds.c: counts which members stepped which optimizer in the last iterations. */
#include "analyzer/loop/vote_rounds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"

enum { VOTE_ROUNDS_START = 16 };

static void vote_round_clear(struct vote_round *vote_round)
{
    for (int i = 0; i < vote_round->sides; i++)
        rankset_free(&vote_round->side[i].ranks);
}

void vote_rounds_clear(struct vote_rounds *vote_rounds)
{
    for (uint32_t i = 0; i < vote_rounds->count; i++)
        vote_round_clear(&vote_rounds->vote_round[i]);
    free(vote_rounds->vote_round);
}

static bool has_voted(const struct vote_round *vote_round, int rank)
{
    for (int i = 0; i < vote_round->sides; i++)
        if (rankset_has(&vote_round->side[i].ranks, rank))
            return true;
    return false;
}

/* The oldest go: those that are complete, else one if there are too many. */
static void make_room(struct vote_rounds *vote_rounds, uint32_t voters)
{
    uint32_t gone = 0;
    while (gone < vote_rounds->count && vote_rounds->vote_round[gone].votes >= voters)
        gone++;
    if (!gone && vote_rounds->count == VOTE_ROUNDS_MAX)
        gone = 1;
    for (uint32_t i = 0; i < gone; i++)
        vote_round_clear(&vote_rounds->vote_round[i]);
    vote_rounds->count -= gone;
    memmove(vote_rounds->vote_round, vote_rounds->vote_round + gone,
            vote_rounds->count * sizeof *vote_rounds->vote_round);
}

/* The round of votes of the vote's iteration, made if there is none. One in which the member has
 * voted is of another epoch. */
static struct vote_round *vote_round_get(struct vote_rounds *vote_rounds, const struct vote *vote,
                                         uint32_t voters)
{
    for (uint32_t i = 0; i < vote_rounds->count; i++) {
        struct vote_round *vote_round = &vote_rounds->vote_round[i];
        if (vote_round->key == vote->key && vote_round->numbered == vote->numbered &&
            vote_round->model == vote->model && !has_voted(vote_round, vote->member->rank))
            return vote_round;
    }
    if (vote_rounds->count >= VOTE_ROUNDS_START)
        make_room(vote_rounds, voters);
    struct vote_round *grown = array_room(vote_rounds->vote_round, sizeof *grown,
                                          vote_rounds->count, &vote_rounds->capacity,
                                          VOTE_ROUNDS_START);
    if (!grown)
        return NULL;
    vote_rounds->vote_round = grown;
    struct vote_round *vote_round = &grown[vote_rounds->count++];
    *vote_round = (struct vote_round){.numbered = vote->numbered,
                                      .key = vote->key,
                                      .model = vote->model,
                                      .text = vote->text,
                                      .backwards = vote->backwards};
    return vote_round;
}

struct vote_round *vote_rounds_enter(struct vote_rounds *vote_rounds, const struct comm *comm,
                                     const struct vote *vote)
{
    errno = 0;
    struct vote_round *vote_round = vote_round_get(vote_rounds, vote, comm->members);
    if (!vote_round) {
        errno = ENOMEM;
        return NULL;
    }
    vote_round->votes++;
    if (vote_round->backwards != vote->backwards)
        return NULL;
    int i = 0;
    while (i < vote_round->sides && vote_round->side[i].count != vote->count)
        i++;
    if (i == VOTE_ROUND_SIDES_MAX)
        return NULL;
    if (i == vote_round->sides)
        vote_round->side[vote_round->sides++] =
            (struct vote_round_side){.count = vote->count, .site = vote->site};
    if (rankset_add(&vote_round->side[i].ranks, vote->member->rank)) {
        errno = ENOMEM;
        return NULL;
    }
    return vote_round;
}
