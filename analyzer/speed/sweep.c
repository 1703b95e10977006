/* sweep.c: how an iteration divides into compute, transfer, waiting and idle time. */
#include "analyzer/speed/sweep.h"

#include <stdlib.h>

static int compare_edges(const void *a, const void *b)
{
    const struct speed_edge *left = a, *right = b;
    return (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
}

static uint64_t clamp_ns(uint64_t time_ns, uint64_t begin_ns, uint64_t end_ns)
{
    if (time_ns < begin_ns)
        return begin_ns;
    return time_ns > end_ns ? end_ns : time_ns;
}

size_t speed_sweep(struct speed_edge *edge, size_t edges, uint64_t begin_ns, uint64_t end_ns,
                   struct speed_iteration *to, struct speed_piece *piece)
{
    int open[SHARES] = {0}, meetings = 0;
    size_t pieces = 0;
    uint64_t last_ns = begin_ns;
    qsort(edge, edges, sizeof *edge, compare_edges);
    for (size_t i = 0; i < edges; i++) {
        uint64_t now_ns = clamp_ns(edge[i].time_ns, begin_ns, end_ns);
        int first = 0;
        while (first < SHARES && !open[first])
            first++;
        float seconds = now_ns > last_ns ? (float)((double)(now_ns - last_ns) / 1e9) : 0;
        if (first < SHARES)
            to->share[first] += seconds;
        if (first == SHARE_WAIT && meetings)
            to->met += seconds;
        if (now_ns > last_ns)
            piece[pieces++] = (struct speed_piece){last_ns, now_ns, first};
        last_ns = now_ns;
        open[edge[i].share] += edge[i].change;
        meetings += edge[i].meets ? edge[i].change : 0;
    }
    return pieces;
}

float speed_idle(const struct speed_iteration *iteration)
{
    float idle = iteration->length;
    for (int share = 0; share < SHARES; share++)
        idle -= iteration->share[share];
    return idle > 0 ? idle : 0;
}

float speed_idle_surely(const struct speed_iteration *iteration)
{
    float idle = speed_idle(iteration) - iteration->after;
    return idle > 0 ? idle : 0;
}

float speed_own(const struct speed_iteration *iteration)
{
    return iteration->length - iteration->share[SHARE_WAIT];
}
