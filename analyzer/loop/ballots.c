/* ballots.c: counts which members stepped which optimizer in the last iterations. */
#include "analyzer/loop/ballots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"

enum { BALLOTS_START = 16 };

static void ballot_clear(struct ballot *ballot)
{
    for (int i = 0; i < ballot->sides; i++)
        rankset_free(&ballot->side[i].ranks);
}

void ballots_clear(struct ballots *ballots)
{
    for (uint32_t i = 0; i < ballots->count; i++)
        ballot_clear(&ballots->ballot[i]);
    free(ballots->ballot);
}

static bool has_voted(const struct ballot *ballot, int rank)
{
    for (int i = 0; i < ballot->sides; i++)
        if (rankset_has(&ballot->side[i].ranks, rank))
            return true;
    return false;
}

/* The oldest go: those that are complete, else one if there are too many. */
static void make_room(struct ballots *ballots, uint32_t voters)
{
    uint32_t gone = 0;
    while (gone < ballots->count && ballots->ballot[gone].votes >= voters)
        gone++;
    if (!gone && ballots->count == BALLOTS_MAX)
        gone = 1;
    for (uint32_t i = 0; i < gone; i++)
        ballot_clear(&ballots->ballot[i]);
    ballots->count -= gone;
    memmove(ballots->ballot, ballots->ballot + gone, ballots->count * sizeof *ballots->ballot);
}

/* The ballot of the vote's iteration, made if there is none. One in which the member has voted is
 * of another epoch. */
static struct ballot *ballot_get(struct ballots *ballots, const struct vote *vote, uint32_t voters)
{
    for (uint32_t i = 0; i < ballots->count; i++) {
        struct ballot *ballot = &ballots->ballot[i];
        if (ballot->key == vote->key && ballot->numbered == vote->numbered &&
            ballot->model == vote->model && !has_voted(ballot, vote->member->rank))
            return ballot;
    }
    if (ballots->count >= BALLOTS_START)
        make_room(ballots, voters);
    struct ballot *grown = array_room(ballots->ballot, sizeof *grown, ballots->count,
                                      &ballots->capacity, BALLOTS_START);
    if (!grown)
        return NULL;
    ballots->ballot = grown;
    struct ballot *ballot = &grown[ballots->count++];
    *ballot = (struct ballot){.numbered = vote->numbered,
                              .key = vote->key,
                              .model = vote->model,
                              .text = vote->text,
                              .backwards = vote->backwards};
    return ballot;
}

struct ballot *ballots_enter(struct ballots *ballots, const struct comm *comm,
                             const struct vote *vote)
{
    errno = 0;
    struct ballot *ballot = ballot_get(ballots, vote, comm->members);
    if (!ballot) {
        errno = ENOMEM;
        return NULL;
    }
    ballot->votes++;
    if (ballot->backwards != vote->backwards)
        return NULL;
    int i = 0;
    while (i < ballot->sides && ballot->side[i].count != vote->count)
        i++;
    if (i == BALLOT_SIDES_MAX)
        return NULL;
    if (i == ballot->sides)
        ballot->side[ballot->sides++] =
            (struct ballot_side){.count = vote->count, .site = vote->site};
    if (rankset_add(&ballot->side[i].ranks, vote->member->rank)) {
        errno = ENOMEM;
        return NULL;
    }
    return ballot;
}
