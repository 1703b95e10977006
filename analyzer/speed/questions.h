/* questions.h: the iterations that are replayed, and what is replaced in them for each question.
 * For analyzer/speed. */
#ifndef DDPCHECK_SPEED_QUESTIONS_H
#define DDPCHECK_SPEED_QUESTIONS_H

#include "analyzer/speed/replay.h"
#include "analyzer/speed/stages.h"

/* An iteration, with what has been replaced so far. */
struct scene {
    struct replay *replay;
    uint64_t iteration;
    double *work, *delay, *transfer; /* now */
    double *try_work, *try_delay, *try_transfer;
    double length; /* now */
};

struct whatif {
    struct judged *judged;
    struct stages stages;
    struct scene *scene;
    uint32_t scenes;
    uint32_t *stage;    /* by rank: the first rank of its stage of a pipeline */
    uint32_t stages_of; /* how many stages there are */
    double *share;      /* by rank: what it does on average, by what its stage does */
    bool *is_chosen;    /* by rank: of the question that is asked */
    double *value;      /* room for one of each rank */
};

/* 0 or -1 (ENOMEM); to be freed in either case. */
int whatif_begin(struct whatif *whatif, struct judged *judged);
void whatif_free(struct whatif *whatif);
/* How many seconds shorter the iteration would be without the slowdown; what it has then is in
 * scene->try_work and so on. */
double whatif_ask(struct whatif *whatif, const struct scene *scene,
                  const struct slowdown *slowdown);
/* What each rank does beside its stage's others on average, in whatif->share: ranks that always
 * have more keep it where unevenness is asked for. */
void whatif_find_shares(struct whatif *whatif);
/* The same if the ranks of each stage did alike, beside what has been replaced. */
double whatif_alike(struct whatif *whatif, const struct scene *scene);
/* Adds hosts, and ranks, that are slow in some iterations only, and not found yet. A busy host has
 * the same effect, so nothing is added of recorded jobs. */
void judge_turns(struct whatif *whatif, struct slowdowns *found);
/* What each stage computes on average, in whatif->value by its first rank. Returns the mean of all
 * stages. */
double whatif_stage_work(struct whatif *whatif, const struct scene *scene);

#endif
