/* pausing.c: pauses that come again and again, of ranks or of all. */
#include <math.h>
#include <stdlib.h>

#include "analyzer/speed/regular.h"
#include "analyzer/speed/slowdown.h"

enum {
    PAUSE_PERCENT = 15,     /* of the median iteration, or six times the usual deviation */
    SAME_PAUSE_PERCENT = 50 /* of the longest rank's, which a rank that pauses loses */
};

/* Pauses are longer than what is usual before the step, or since; a copy, which the caller frees.
 */
static double *beyond_usual(const struct judged *judged, const double *value, size_t count)
{
    size_t at = judged->step ? judged->step - judged->first : 0;
    double *beyond = malloc((count + 1) * sizeof *beyond);
    double before = speed_median_of(value, at), after = speed_median_of(value + at, count - at);
    for (size_t i = 0; beyond && i < count; i++)
        beyond[i] = value[i] - (i < at ? before : after);
    return beyond;
}

/* What long iterations are. */
enum pausing { PAUSES_NONE, PAUSES_IRREGULAR, PAUSES_REGULAR };

static enum pausing find_pauses(const struct judged *judged, const double *value,
                                struct pause_list *pauses)
{
    size_t count = judged->end - judged->first;
    double *beyond = beyond_usual(judged, value, count), length = judged->length;
    double *deviation = malloc((count + 1) * sizeof *deviation);
    struct pause_list *all = calloc(1, sizeof *all);
    double least = SHARE_PERCENT * length * (double)count / 100;
    enum pausing found = PAUSES_NONE;
    for (size_t i = 0; deviation && beyond && i < count; i++)
        deviation[i] = fabs(beyond[i]);
    if (deviation && beyond && all) {
        double limit = fmax(6 * speed_median(deviation, count), length * PAUSE_PERCENT / 100);
        for (size_t i = 0; i < count; i++) {
            if (beyond[i] <= limit)
                continue;
            all->at[all->count] = i;
            all->extra += all->each[all->count++] = beyond[i];
        }
        bool is_regular = all->count >= PAUSES_LEAST && pauses_find_regular(all, count, pauses);
        if (is_regular && pauses->extra >= least)
            found = PAUSES_REGULAR;
        else if (!is_regular && all->count >= PAUSES_LEAST && all->extra >= least)
            found = PAUSES_IRREGULAR;
    }
    free(deviation);
    free(beyond);
    free(all);
    return found;
}

static struct slowdown pause_of(const struct judged *judged, const struct pause_list *pauses,
                                uint64_t first, size_t count)
{
    return (struct slowdown){.kind = SLOW_PAUSE,
                             .lost = pauses->extra / (double)count,
                             .length = judged->length,
                             .period = pauses->period,
                             .period_varies = pauses->varies,
                             .each = pauses->extra / (double)pauses->count,
                             .times = pauses->count,
                             .first = first + pauses->at[0],
                             .last = first + pauses->at[pauses->count - 1]};
}

/* A rank's own time by iteration; what is not known takes the previous value. */
static void own_of_rank(const struct judged *judged, const struct speed_rank *rank, double *own)
{
    struct speed_iteration iteration;
    for (uint64_t n = judged->first; n < judged->end; n++) {
        bool known = judged_iteration(rank, n, &iteration);
        size_t i = n - judged->first;
        own[i] = known ? speed_own(&iteration) : 0;
        if (!known && i)
            own[i] = own[i - 1];
    }
}

/* They are more regular than chance makes one of those that were looked at. */
static bool is_clear(const struct pause_list *pauses, uint32_t irregular)
{
    return pauses_are_clear(pauses->chance * (1 + irregular));
}

/* What each rank loses in pauses, by index, and those of the rank that loses most: in its own time,
 * or, with `beyond_peers`, in what that is longer than its peers'. Of many ranks whose long
 * iterations are chance's, those of one will look regular: *irregular says of how many. */
static double *weigh_pauses(struct judged *judged, bool beyond_peers, struct pause_list *longest,
                            uint32_t *irregular)
{
    size_t count = judged->end - judged->first;
    double *own = malloc((count + 1) * sizeof *own);
    double *lost = calloc(judged->speed->count + 1, sizeof *lost);
    struct pause_list *pauses = malloc(sizeof *pauses);
    longest->extra = 0;
    *irregular = 0;
    for (uint32_t r = 0; own && lost && pauses && r < judged->speed->count; r++) {
        if (beyond_peers && !judged->among[r])
            continue;
        own_of_rank(judged, judged->speed->rank[r], own);
        const double *value = beyond_peers ? judged_excess(judged, r) : own;
        enum pausing is = find_pauses(judged, value, pauses);
        *irregular += is == PAUSES_IRREGULAR;
        lost[r] = is == PAUSES_REGULAR ? pauses->extra : 0;
        if (lost[r] > longest->extra)
            *longest = *pauses;
    }
    if (!is_clear(longest, *irregular))
        longest->extra = 0;
    if (!own || !pauses) {
        free(lost);
        lost = NULL;
    }
    free(own);
    free(pauses);
    return lost;
}

/* Where equal operations were taken for an iteration each, several of them may be one, at whose end
 * all ranks do something else. */
static bool may_be_iterations(const struct judged *judged, const struct slowdown *slowdown)
{
    return !judged->named && judged->speed->rounds_are_alike && !slowdown->period_varies;
}

/* Whether its waiting is no part of its own time. */
static bool shows_waiting(const struct speed_rank *rank)
{
    return rank->kernels || !rank->has_others;
}

/* What each rank loses while others pause, or it does, beyond what most ranks lose: who waits for
 * the others loses nothing of his own, so where nothing shows that a rank waits it counts as
 * losing nothing. NULL: memory is short; the caller frees. */
static double *lost_during(const struct judged *judged, const struct pause_list *pauses)
{
    uint32_t ranks = judged->speed->count;
    size_t count = judged->end - judged->first;
    double *own = malloc((count + 1) * sizeof *own), *lost = calloc(ranks + 1, sizeof *lost);
    bool failed = !own || !lost;
    for (uint32_t r = 0; !failed && r < ranks; r++) {
        own_of_rank(judged, judged->speed->rank[r], own);
        double *beyond = beyond_usual(judged, own, count);
        failed = !beyond;
        for (size_t i = 0; beyond && i < pauses->count; i++)
            lost[r] += beyond[pauses->at[i]];
        free(beyond);
    }
    double most_ranks = failed ? 0 : speed_median_of(lost, ranks);
    for (uint32_t r = 0; !failed && r < ranks; r++)
        lost[r] = shows_waiting(judged->speed->rank[r]) ? lost[r] - most_ranks : 0;
    free(own);
    if (!failed)
        return lost;
    free(lost);
    return NULL;
}

static void add_rank_pauses(struct judged *judged, const struct pause_list *longest,
                            const double *lost, struct slowdowns *found)
{
    const struct speed *speed = judged->speed;
    const struct speed_rank **rank = malloc((speed->count + 1) * sizeof *rank);
    struct slowdown slowdown =
        pause_of(judged, longest, judged->first, judged->end - judged->first);
    if (!rank) {
        found->failed = true;
        return;
    }
    slowdown.rank = rank;
    for (uint32_t r = 0; r < speed->count; r++)
        if (lost[r] > 0 && 100 * lost[r] >= SAME_PAUSE_PERCENT * longest->extra)
            rank[slowdown.ranks++] = speed->rank[r];
    if (slowdown.ranks == speed->count) {
        if (!may_be_iterations(judged, &slowdown))
            slowdowns_add_all(found, speed, &slowdown);
    } else {
        slowdown.comm = slowdown.ranks == 1 ? rank[0]->member->comm : NULL;
        slowdowns_add(found, &slowdown);
    }
    free(rank);
}

/* A rank that pauses with those of its host exceeds only its peers elsewhere, and by chance less
 * than those beside it: who loses as much in these iterations pauses, too. */
static void add_pauses_with_others(struct judged *judged, const struct pause_list *longest,
                                   double *lost, struct slowdowns *found)
{
    double *together = lost_during(judged, longest);
    for (uint32_t r = 0; together && r < judged->speed->count; r++)
        lost[r] = fmax(lost[r], together[r]);
    if (together)
        add_rank_pauses(judged, longest, lost, found);
    else
        found->failed = true;
    free(together);
}

/* Where only the iterations' length shows them, they are those of the ranks that lose most of it;
 * of all, if there are none. */
static void add_pauses_of_length(struct judged *judged, const struct pause_list *pauses,
                                 struct slowdowns *found)
{
    double *lost = lost_during(judged, pauses), most = 0;
    for (uint32_t r = 0; lost && r < judged->speed->count; r++)
        most = fmax(most, lost[r]);
    for (uint32_t r = 0; lost && r < judged->speed->count; r++)
        if (100 * most < SAME_PAUSE_PERCENT * pauses->extra)
            lost[r] = pauses->extra;
    if (lost)
        add_rank_pauses(judged, pauses, lost, found);
    else
        found->failed = true;
    free(lost);
}

/* Waiting for a rank that pauses may be hidden in others' own time, so what is beyond their peers'
 * counts first. Where all peers pause that shows little or nothing, and where operations are placed
 * by their hosts nothing else does. Returns how many ranks have
 * long iterations that are no pauses. */
static uint32_t judge_rank_pauses(struct judged *judged, struct slowdowns *found)
{
    uint32_t irregular = 0;
    struct pause_list *pauses = calloc(2, sizeof *pauses);
    double *beyond = pauses ? weigh_pauses(judged, true, &pauses[0], &irregular) : NULL;
    double *own = beyond ? weigh_pauses(judged, false, &pauses[1], &irregular) : NULL;
    if (!own)
        found->failed = true;
    else if (100 * pauses[0].extra >= SAME_PAUSE_PERCENT * pauses[1].extra && pauses[0].extra > 0)
        add_pauses_with_others(judged, &pauses[0], beyond, found);
    else if (pauses[1].extra > 0 && !judged->placed)
        add_rank_pauses(judged, &pauses[1], own, found);
    free(pauses);
    free(beyond);
    free(own);
    return irregular;
}

/* Those that show in no rank's own time show in the iterations' length. */
void judge_pauses(struct judged *judged, struct slowdowns *found)
{
    uint32_t before = found->count;
    struct pause_list *pauses = calloc(1, sizeof *pauses);
    double *length = speed_median_lengths(judged);
    uint32_t irregular = judge_rank_pauses(judged, found);
    if (!pauses || !length) {
        found->failed = true;
    } else if (!judged->placed && found->count == before &&
               find_pauses(judged, length, pauses) == PAUSES_REGULAR &&
               is_clear(pauses, irregular)) {
        add_pauses_of_length(judged, pauses, found);
    }
    free(pauses);
    free(length);
}
