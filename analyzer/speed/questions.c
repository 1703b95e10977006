/* questions.c: see questions.h. */
#include "analyzer/speed/questions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXPLAINED_LEAST = 5 }; /* % that a replay may differ from its iteration */

static uint32_t root_of_rank(uint32_t *parent, uint32_t rank)
{
    while (parent[rank] != rank)
        rank = parent[rank] = parent[parent[rank]];
    return rank;
}

static void join_stages(uint32_t *parent, uint32_t one, uint32_t other)
{
    uint32_t left = root_of_rank(parent, one), right = root_of_rank(parent, other);
    if (left < right)
        parent[right] = left;
    else
        parent[left] = right;
}

/* Ranks that share a communicator which holds no two stages of a pipeline are of one stage, and do
 * the same work. */
static void find_rank_groups(struct whatif *whatif)
{
    const struct stages *stages = &whatif->stages;
    uint32_t ranks = whatif->judged->speed->count;
    for (uint32_t r = 0; r < ranks; r++)
        whatif->stage[r] = r;
    for (uint32_t c = 0; c < stages->comms; c++) {
        const struct comm *comm = stages->comm[c]->comm;
        uint32_t first = UINT32_MAX;
        for (uint32_t i = 0; i < comm->members && stages->comm[c]->collectives && !stages->spans[c];
             i++) {
            uint32_t rank = stages->rank[c][i];
            if (rank != UINT32_MAX && first != UINT32_MAX)
                join_stages(whatif->stage, first, rank);
            else if (rank != UINT32_MAX)
                first = rank;
        }
    }
    for (uint32_t r = 0; r < ranks; r++)
        whatif->stage[r] = root_of_rank(whatif->stage, r);
    for (uint32_t r = 0; r < ranks; r++)
        whatif->stages_of += whatif->stage[r] == r;
}

static void free_scene(struct scene *scene)
{
    replay_free(scene->replay);
    free(scene->work);
    scene->replay = NULL;
    scene->work = NULL;
}

static uint32_t steps_of(const struct replay *replay, uint32_t rank)
{
    return replay->first[rank + 1] - replay->first[rank];
}

/* Something that is not recorded, such as a kernel that waits for its peers, holds up the
 * operations of a rank. */
static bool is_held_up_in_replay(const struct replay *replay, double *value)
{
    double most = 0;
    for (uint32_t r = 0; r < replay->ranks; r++) {
        value[r] = 0;
        for (uint32_t s = 0; s < steps_of(replay, r); s++)
            value[r] += replay->of[r][s].queued;
        most = fmax(most, value[r]);
    }
    return 100 * (most - speed_median(value, replay->ranks)) > EXPLAINED_LEAST * replay->recorded;
}

/* Whether the model explains the iteration; then it is a scene. */
static bool make_scene(const struct judged *judged, uint64_t iteration, double *value,
                       struct scene *scene)
{
    *scene = (struct scene){.replay = replay_new(judged->speed, iteration), .iteration = iteration};
    struct replay *replay = scene->replay;
    if (!replay || is_held_up_in_replay(replay, value) ||
        100 * fabs(replay->length - replay->recorded) > EXPLAINED_LEAST * replay->recorded ||
        !(scene->work = malloc((4 * replay->steps + 2 * replay->meetings + 1) * sizeof(double)))) {
        free_scene(scene);
        return false;
    }
    scene->delay = scene->work + replay->steps;
    scene->try_work = scene->delay + replay->steps;
    scene->try_delay = scene->try_work + replay->steps;
    scene->transfer = scene->try_delay + replay->steps;
    scene->try_transfer = scene->transfer + replay->meetings;
    memcpy(scene->work, replay->work, replay->steps * sizeof(double));
    memcpy(scene->delay, replay->delay, replay->steps * sizeof(double));
    memcpy(scene->transfer, replay->transfer, replay->meetings * sizeof(double));
    scene->length = replay->length;
    return true;
}

static double sum_of(const double *value, const struct replay *replay, uint32_t rank)
{
    double sum = 0;
    for (uint32_t s = replay->first[rank]; s < replay->first[rank + 1]; s++)
        sum += value[s];
    return sum;
}

static double mean_of(const double *value, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += value[i];
    return count ? sum / count : 0;
}

/* What is usual in a stage: of the ranks that are not chosen, or of all, step by step. */
struct usual {
    uint32_t steps; /* as most iterations have */
    double *value;  /* by step */
    double total;
    bool is_known;
};

static bool is_counted_iteration(const struct whatif *whatif, uint32_t rank, uint32_t stage,
                                 bool with_all)
{
    return whatif->stage[rank] == stage && (with_all || !whatif->is_chosen[rank]);
}

/* The number of steps that most ranks of the stage have. */
static uint32_t usual_steps(const struct whatif *whatif, const struct replay *replay,
                            uint32_t stage, bool with_all)
{
    uint32_t steps = 0, count = 0; /* Boyer and Moore's majority */
    for (uint32_t r = 0; r < replay->ranks; r++) {
        if (!is_counted_iteration(whatif, r, stage, with_all))
            continue;
        bool is_same = steps_of(replay, r) == steps;
        if (!count)
            steps = steps_of(replay, r);
        count += !count || is_same ? 1 : -1;
    }
    return steps;
}

/* The median, or with all the mean, which keeps what they do together. */
static double usual_of_values(double *value, uint32_t count, bool with_all)
{
    return with_all ? mean_of(value, count) : speed_median(value, count);
}

/* 0 or -1 (ENOMEM). */
static int find_usual(struct whatif *whatif, const struct replay *replay, const double *from,
                      uint32_t stage, bool with_all, struct usual *usual)
{
    uint32_t count = 0;
    *usual = (struct usual){.steps = usual_steps(whatif, replay, stage, with_all)};
    for (uint32_t r = 0; r < replay->ranks; r++)
        if (is_counted_iteration(whatif, r, stage, with_all))
            whatif->value[count++] = sum_of(from, replay, r);
    usual->is_known = count > (with_all ? 1 : 0);
    usual->total = usual_of_values(whatif->value, count, with_all);
    if (!(usual->value = malloc((usual->steps + 1) * sizeof *usual->value)))
        return -1;
    for (uint32_t k = 0; k < usual->steps; k++) {
        count = 0;
        for (uint32_t r = stage; r < replay->ranks; r++)
            if (is_counted_iteration(whatif, r, stage, with_all) &&
                steps_of(replay, r) == usual->steps)
                whatif->value[count++] = from[replay->first[r] + k];
        usual->value[k] = usual_of_values(whatif->value, count, with_all);
    }
    return 0;
}

/* Step by step, if the rank has as many, else in all. */
static void be_usual(const struct replay *replay, const struct usual *usual, uint32_t rank,
                     double share, const double *from, double *to)
{
    bool by_step = steps_of(replay, rank) == usual->steps;
    double own = by_step ? 0 : sum_of(from, replay, rank);
    for (uint32_t s = replay->first[rank]; s < replay->first[rank + 1]; s++) {
        if (by_step)
            to[s] = share * usual->value[s - replay->first[rank]];
        else if (own > 0)
            to[s] = from[s] * share * usual->total / own;
    }
}

/* The chosen ranks of a stage, or all of it, become as is usual there. Returns false if nobody says
 * what that is. */
static bool even_out(struct whatif *whatif, const struct scene *scene, uint32_t stage,
                     const double *from, double *to, bool with_all)
{
    struct usual usual;
    bool is_known = !find_usual(whatif, scene->replay, from, stage, with_all, &usual) &&
                    usual.is_known;
    for (uint32_t r = stage; is_known && r < scene->replay->ranks; r++)
        if (whatif->stage[r] == stage && (with_all || whatif->is_chosen[r]))
            be_usual(scene->replay, &usual, r, with_all ? whatif->share[r] : 1, from, to);
    free(usual.value);
    return is_known;
}

static bool has_chosen(const struct whatif *whatif, uint32_t stage)
{
    for (uint32_t r = stage; r < whatif->judged->speed->count; r++)
        if (whatif->stage[r] == stage && whatif->is_chosen[r])
            return true;
    return false;
}

/* All ranks of the stage are chosen: no GPU should wait for its host longer than those of the other
 * stages do. */
static void delay_as_others(struct whatif *whatif, const struct scene *scene, uint32_t stage)
{
    uint32_t count = 0, ranks = scene->replay->ranks;
    for (uint32_t r = 0; r < ranks; r++)
        if (!whatif->is_chosen[r])
            whatif->value[count++] = sum_of(scene->delay, scene->replay, r);
    double usual = speed_median(whatif->value, count);
    for (uint32_t r = stage; r < ranks; r++) {
        double own = whatif->stage[r] == stage ? sum_of(scene->delay, scene->replay, r) : 0;
        for (uint32_t s = scene->replay->first[r]; own > usual && s < scene->replay->first[r + 1];
             s++)
            scene->try_delay[s] = scene->delay[s] * usual / own;
    }
}

/* The same, and it is known by how much they are slower. */
static void lose_less(const struct whatif *whatif, const struct scene *scene, uint32_t stage,
                      double lost)
{
    for (uint32_t r = stage; r < scene->replay->ranks; r++) {
        double own = whatif->stage[r] == stage && whatif->is_chosen[r]
                         ? sum_of(scene->work, scene->replay, r)
                         : 0;
        for (uint32_t s = scene->replay->first[r]; own > 0 && s < scene->replay->first[r + 1]; s++)
            scene->try_work[s] = scene->work[s] * fmax(1 - lost / own, 0);
    }
}

static void try_ranks(struct whatif *whatif, const struct scene *scene,
                      const struct slowdown *slowdown)
{
    memset(whatif->is_chosen, 0, whatif->judged->speed->count * sizeof *whatif->is_chosen);
    for (uint32_t i = 0; i < slowdown->ranks; i++)
        whatif->is_chosen[slowdown->rank[i]->index] = true;
    for (uint32_t r = 0; r < whatif->judged->speed->count; r++) {
        if (whatif->stage[r] != r || !has_chosen(whatif, r))
            continue;
        bool has_peers = even_out(whatif, scene, r, scene->work, scene->try_work, false) &&
                         even_out(whatif, scene, r, scene->delay, scene->try_delay, false);
        if (!has_peers && slowdown->kind == SLOW_HOST)
            delay_as_others(whatif, scene, r);
        else if (!has_peers)
            lose_less(whatif, scene, r, slowdown->lost);
    }
}

static bool has_slow_link(const struct whatif *whatif, uint64_t id, const struct slowdown *slowdown)
{
    for (uint32_t c = 0; c < whatif->stages.comms; c++) {
        const struct speed_comm *comm = whatif->stages.comm[c];
        if (comm->id != id || comm->comm->nranks != slowdown->comm->nranks)
            continue;
        for (uint32_t i = 0; i < comm->comm->members; i++)
            for (uint32_t r = 0; r < slowdown->ranks; r++)
                if (whatif->stages.rank[c][i] == slowdown->rank[r]->index)
                    return true;
    }
    return false;
}

static void try_link(const struct whatif *whatif, const struct scene *scene,
                     const struct slowdown *slowdown)
{
    for (uint32_t m = 0; m < scene->replay->meetings; m++)
        if (slowdown->ratio > 1 && has_slow_link(whatif, scene->replay->comm[m], slowdown))
            scene->try_transfer[m] = scene->transfer[m] / slowdown->ratio;
}

void whatif_find_shares(struct whatif *whatif)
{
    uint32_t ranks = whatif->judged->speed->count;
    double *total = calloc(ranks + 1, sizeof *total);
    for (uint32_t r = 0; r < ranks; r++)
        whatif->share[r] = 0;
    for (uint32_t i = 0; total && i < whatif->scenes; i++)
        for (uint32_t r = 0; r < ranks; r++)
            whatif->share[r] += sum_of(whatif->scene[i].work, whatif->scene[i].replay, r);
    for (uint32_t r = 0; total && r < ranks; r++)
        total[whatif->stage[r]] += whatif->share[r];
    for (uint32_t r = 0; r < ranks; r++)
        whatif->value[r] = 0;
    for (uint32_t r = 0; r < ranks; r++)
        whatif->value[whatif->stage[r]]++;
    for (uint32_t r = 0; r < ranks; r++) {
        double mean = total ? total[whatif->stage[r]] / whatif->value[whatif->stage[r]] : 0;
        whatif->share[r] = mean > 0 ? whatif->share[r] / mean : 1;
    }
    free(total);
}

/* Work, or delays, of all ranks. */
static void try_even(struct whatif *whatif, const struct scene *scene, const double *from,
                     double *to)
{
    for (uint32_t r = 0; r < whatif->judged->speed->count; r++)
        if (whatif->stage[r] == r)
            even_out(whatif, scene, r, from, to, true);
}

double whatif_stage_work(struct whatif *whatif, const struct scene *scene)
{
    uint32_t ranks = whatif->judged->speed->count;
    double sum = 0;
    for (uint32_t r = 0; r < ranks; r++)
        whatif->value[r] = 0;
    for (uint32_t r = 0; r < ranks; r++)
        whatif->value[whatif->stage[r]] += sum_of(scene->work, scene->replay, r);
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t members = 0;
        for (uint32_t other = r; whatif->stage[r] == r && other < ranks; other++)
            members += whatif->stage[other] == r;
        if (members)
            whatif->value[r] /= members;
        sum += members ? whatif->value[r] : 0;
    }
    return sum / whatif->stages_of;
}

static void try_stages(struct whatif *whatif, const struct scene *scene)
{
    double mean = whatif_stage_work(whatif, scene);
    for (uint32_t r = 0; r < whatif->judged->speed->count; r++) {
        double own = whatif->value[whatif->stage[r]];
        for (uint32_t s = scene->replay->first[r]; own > 0 && s < scene->replay->first[r + 1]; s++)
            scene->try_work[s] = scene->work[s] * mean / own;
    }
}

static void try_nothing(const struct scene *scene)
{
    memcpy(scene->try_work, scene->work, scene->replay->steps * sizeof(double));
    memcpy(scene->try_delay, scene->delay, scene->replay->steps * sizeof(double));
    memcpy(scene->try_transfer, scene->transfer, scene->replay->meetings * sizeof(double));
}

/* How many seconds shorter the iteration would be as it is tried. */
static double gain_of_trial(const struct scene *scene)
{
    double length =
        replay_run(scene->replay, scene->try_work, scene->try_delay, scene->try_transfer);
    return length > 0 ? scene->length - length : 0;
}

double whatif_alike(struct whatif *whatif, const struct scene *scene)
{
    for (uint32_t r = 0; r < whatif->judged->speed->count; r++)
        whatif->share[r] = 1;
    try_nothing(scene);
    try_even(whatif, scene, scene->work, scene->try_work);
    try_even(whatif, scene, scene->delay, scene->try_delay);
    return gain_of_trial(scene);
}

double whatif_ask(struct whatif *whatif, const struct scene *scene, const struct slowdown *slowdown)
{
    try_nothing(scene);
    if (slowdown->kind == SLOW_LINK)
        try_link(whatif, scene, slowdown);
    else if (slowdown->kind == SLOW_UNEVEN)
        try_even(whatif, scene, scene->work, scene->try_work);
    else if (slowdown->kind == SLOW_STAGES)
        try_stages(whatif, scene);
    else
        try_ranks(whatif, scene, slowdown);
    return gain_of_trial(scene);
}

void whatif_free(struct whatif *whatif)
{
    for (uint32_t i = 0; i < whatif->scenes; i++)
        free_scene(&whatif->scene[i]);
    free(whatif->scene);
    free(whatif->stage);
    free(whatif->share);
    free(whatif->is_chosen);
    free(whatif->value);
    stages_free(&whatif->stages);
}

int whatif_begin(struct whatif *whatif, struct judged *judged)
{
    uint32_t ranks = judged->speed->count;
    uint64_t first = judged->begin ? judged->begin : judged->first;
    *whatif = (struct whatif){.judged = judged,
                              .scene = malloc((judged->end - first + 1) * sizeof *whatif->scene),
                              .stage = malloc((ranks + 1) * sizeof *whatif->stage),
                              .share = malloc((ranks + 1) * sizeof *whatif->share),
                              .is_chosen = calloc(ranks + 1, sizeof *whatif->is_chosen),
                              .value = malloc((ranks + 1) * sizeof *whatif->value)};
    if (!whatif->scene || !whatif->stage || !whatif->share || !whatif->is_chosen ||
        !whatif->value || !judged->pipeline_of || stages_find(judged, &whatif->stages))
        return -1;
    find_rank_groups(whatif);
    for (uint64_t n = first; n < judged->end; n++)
        whatif->scenes += make_scene(judged, n, whatif->value, &whatif->scene[whatif->scenes]);
    return 0;
}
