/* regular.c: long iterations that come at equal distances, or nearly. */
#include "analyzer/speed/regular.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/speed/slowdown.h"

enum {
    REGULAR_PERCENT = 80, /* of the times at which one is due have one */
    MOSTLY_PERCENT = 60,  /* of what is lost in long iterations is lost in these */
    VARYING_LEAST = 5,    /* pauses, where their distances vary */
    NEAR_PERCENT = 35,    /* of the mean distance, which a distance near it differs by at most */
    SMALLER_PERCENT = 40  /* of a long pause: what is shorter is none */
};
/* As regular as chance makes long iterations, which come independently of each other, so rarely. */
static const double chance_most = 0.01;

bool pauses_are_clear(double chance)
{
    return chance <= chance_most;
}

/* Long iterations, by their number, and how many seconds each is longer. */
struct long_iterations {
    double extra[ITERATIONS_KEPT + 1]; /* 0: it is not long */
    size_t count;
};

static void find_long_iterations(const struct pause_list *all, double least,
                                 struct long_iterations *found)
{
    *found = (struct long_iterations){0};
    for (size_t i = 0; i < all->count; i++) {
        if (all->each[i] < least)
            continue;
        found->extra[all->at[i]] = all->each[i];
        found->count++;
    }
}

/* Whether the iterations at equal distances from `phase` on (`hits` of them are long) are most of
 * all that is lost, and more than chance brings there for any of the periods and phases; a pause
 * may reach into the next iteration. */
static bool are_pauses(const struct pause_list *all, const struct long_iterations *found,
                       size_t count, size_t phase, size_t hits, struct pause_list *pauses)
{
    size_t period = pauses->period, slots = (count - phase + period - 1) / period;
    double seconds = 0;
    if (hits < PAUSES_LEAST || 100 * hits < REGULAR_PERCENT * slots)
        return false;
    for (size_t i = phase; i < count; i += period)
        if (found->extra[i] > 0)
            seconds += found->extra[i] + found->extra[i + 1];
    if (100 * seconds < MOSTLY_PERCENT * all->extra)
        return false;
    double longest = (double)(count / PAUSES_LEAST), tried = longest * (longest + 1) / 2;
    double each = (double)found->count / (double)count;
    pauses->chance = tried * speed_chance(slots, hits, each);
    pauses->extra = seconds;
    pauses->count = 0;
    for (size_t i = phase; i < count; i += period)
        if (found->extra[i] > 0)
            pauses->at[pauses->count++] = i;
    return pauses_are_clear(pauses->chance);
}

/* Pauses from `least` seconds on; one may reach into the next iteration. */
static void keep_long_pauses(const struct pause_list *all, double least, struct pause_list *pauses)
{
    *pauses = (struct pause_list){.varies = true};
    for (size_t i = 0; i < all->count; i++) {
        bool goes_on = pauses->count && all->at[i] == pauses->at[pauses->count - 1] + 1;
        if (all->each[i] < least)
            continue;
        pauses->extra += all->each[i];
        if (!goes_on)
            pauses->at[pauses->count++] = all->at[i];
    }
}

/* From where on one is long: about as long as most of what is lost; and, beside another cause of
 * long iterations, above the widest gap between their lengths. */
struct long_pauses {
    double about, above;
};

static struct long_pauses find_long(const struct pause_list *all)
{
    struct long_pauses least = {0};
    double *each = malloc((all->count + 1) * sizeof *each), enough = 0, widest = 1;
    if (!each)
        return (struct long_pauses){.about = INFINITY};
    memcpy(each, all->each, all->count * sizeof *each);
    speed_median(each, all->count);
    for (size_t i = all->count; i > 0 && 2 * enough < all->extra; i--) {
        enough += each[i - 1];
        least.about = each[i - 1] * SMALLER_PERCENT / 100;
    }
    for (size_t i = 1; i < all->count; i++) {
        if (each[i] <= widest * each[i - 1])
            continue;
        widest = each[i] / each[i - 1];
        least.above = each[i];
    }
    free(each);
    return least;
}

/* How probable it is that chance makes neither the first nor the last be further from the ends than
 * that number of mean distances: these, and the sum of the distances, are independent of how the
 * distances differ. */
static double reach_both_ends(size_t distances, double most)
{
    double n = (double)distances;
    return 1 - 2 * pow(1 + most / n, -n) + pow(1 + 2 * most / n, -n);
}

/* A garbage collector runs when a heap has grown by an amount, a checkpoint after some minutes:
 * the distances vary, but most are near their mean. Those of chance are geometric; of two and more,
 * as neighbours are one pause. */
static bool are_nearly_regular(const struct pause_list *all, size_t count, double least,
                               struct pause_list *pauses)
{
    keep_long_pauses(all, least, pauses);
    if (pauses->count < VARYING_LEAST || 100 * pauses->extra < MOSTLY_PERCENT * all->extra)
        return false;
    size_t distances = pauses->count - 1, near = 0;
    double first = (double)pauses->at[0], last = (double)pauses->at[distances];
    double usual = (last - first) / (double)distances, far = usual * NEAR_PERCENT / 100;
    for (size_t i = 1; i < pauses->count; i++)
        near += fabs((double)(pauses->at[i] - pauses->at[i - 1]) - usual) <= far;
    double goes_on = 1 - 1 / (usual - 1); /* by chance, the distance is longer by one */
    double shortest = fmax(ceil(usual - far), 2), longest = floor(usual + far);
    double each = pow(goes_on, shortest - 2) - pow(goes_on, longest - 1);
    pauses->period = (size_t)(usual + 0.5);
    pauses->chance = each > 0 && each < 1 ? speed_chance(distances, near, each) : 1;
    pauses->chance *= reach_both_ends(distances, 1 + NEAR_PERCENT / 100.0);
    return pauses_are_clear(pauses->chance) && first < usual + far &&
           (double)count - last <= usual + far;
}

/* Only those from `least` seconds on are pauses. Many ranks are compared, so of the periods and
 * phases only those are looked at closely that enough long iterations share. */
static bool are_equally_apart(const struct pause_list *all, size_t count, double least,
                              struct pause_list *pauses)
{
    struct long_iterations found;
    find_long_iterations(all, least, &found);
    pauses->varies = false;
    for (size_t period = 2; period <= count / PAUSES_LEAST; period++) {
        uint16_t hits[ITERATIONS_KEPT / PAUSES_LEAST] = {0}; /* by phase */
        pauses->period = period;
        for (size_t i = 0; i < all->count; i++)
            hits[all->at[i] % period] += found.extra[all->at[i]] > 0;
        for (size_t phase = 0; phase < period; phase++)
            if (are_pauses(all, &found, count, phase, hits[phase], pauses))
                return true;
    }
    return false;
}

bool pauses_find_regular(const struct pause_list *all, size_t count, struct pause_list *pauses)
{
    struct long_pauses least = find_long(all);
    if (are_equally_apart(all, count, least.about, pauses) ||
        are_equally_apart(all, count, 0, pauses))
        return true;
    if (are_nearly_regular(all, count, least.about, pauses))
        return true;
    bool are = least.above > 0 && are_nearly_regular(all, count, least.above, pauses);
    pauses->chance *= 2; /* it had two tries */
    return are && pauses_are_clear(pauses->chance);
}
