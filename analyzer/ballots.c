#include "analyzer/ballots.h"

#include <errno.h>
#include <stdlib.h>

struct ballots {
    struct ballot ballot[BALLOTS_KEPT];
    uint32_t next;              /* the oldest */
};

static void ballot_clear(struct ballot *ballot)
{
    for (int i = 0; i < ballot->sides; i++)
        rankset_free(&ballot->side[i].ranks);
    *ballot = (struct ballot){0};
}

void ballots_free(struct ballots *ballots)
{
    for (int i = 0; ballots && i < BALLOTS_KEPT; i++)
        ballot_clear(&ballots->ballot[i]);
    free(ballots);
}

static bool has_voted(const struct ballot *ballot, int rank)
{
    for (int i = 0; i < ballot->sides; i++)
        if (rankset_has(&ballot->side[i].ranks, rank))
            return true;
    return false;
}

/* The ballot of the vote's iteration, made if there is none. One in which the member has voted is of another epoch. */
static struct ballot *ballot_get(struct ballots *ballots, const struct vote *vote)
{
    for (int i = 0; i < BALLOTS_KEPT; i++) {
        struct ballot *ballot = &ballots->ballot[i];
        if (ballot->used && ballot->key == vote->key && ballot->numbered == vote->numbered && ballot->model == vote->model &&
            !has_voted(ballot, vote->member->rank))
            return ballot;
    }
    struct ballot *ballot = &ballots->ballot[ballots->next++ % BALLOTS_KEPT];
    ballot_clear(ballot);
    *ballot = (struct ballot){.numbered = vote->numbered, .used = true, .key = vote->key, .model = vote->model, .text = vote->text,
                              .backwards = vote->backwards};
    return ballot;
}

struct ballot *ballots_enter(struct comm *comm, const struct vote *vote)
{
    errno = 0;
    if (!comm->ballots && !(comm->ballots = calloc(1, sizeof *comm->ballots))) {
        errno = ENOMEM;
        return NULL;
    }
    struct ballot *ballot = ballot_get(comm->ballots, vote);
    if (ballot->backwards != vote->backwards)
        return NULL;
    int i = 0;
    while (i < ballot->sides && ballot->side[i].count != vote->count)
        i++;
    if (i == BALLOT_SIDES_MAX)
        return NULL;
    if (i == ballot->sides)
        ballot->side[ballot->sides++] = (struct ballot_side){.count = vote->count, .site = vote->site};
    if (rankset_add(&ballot->side[i].ranks, vote->member->rank)) {
        errno = ENOMEM;
        return NULL;
    }
    return ballot;
}
