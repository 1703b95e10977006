/* view.c: where time went, as readers show it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/process.h"
#include "analyzer/speed/run_delays.h"
#include "analyzer/speed/slowdown.h"
#include "lib/trace/kinds.h"

static int compare_shown(const void *a, const void *b)
{
    const struct speed_rank *left = *(const struct speed_rank *const *)a,
                            *right = *(const struct speed_rank *const *)b;
    int l = member_shown_rank(left->member), r = member_shown_rank(right->member);
    return (l > r) - (l < r);
}

/* It may be slow, or just its host be busy: starved.c. */
static bool is_hidden(const struct speed *speed, const struct speed_rank *rank)
{
    for (uint32_t i = 0; speed->found && i < speed->found->count; i++) {
        const struct slowdown *slowdown = &speed->found->slowdown[i];
        for (uint32_t k = 0; k < slowdown->ranks && slowdown->starving.is_cause; k++)
            if (slowdown->rank[k] == rank && !slowdown->is_reported)
                return true;
    }
    return false;
}

static void view_rank(const struct speed *speed, const struct speed_rank *rank, double *length,
                      struct speed_view *view)
{
    uint64_t kernels = 0;
    size_t count = 0;
    *view = (struct speed_view){.shown_rank = member_shown_rank(rank->member),
                                .host = rank->key.process->info.host};
    for (uint32_t i = 0; i < rank->iterations; i++) {
        const struct speed_iteration *iteration = &rank->iteration[i];
        if (!iteration->number)
            continue;
        length[count++] = iteration->length;
        view->compute_s += iteration->share[SHARE_COMPUTE];
        view->wait_s += iteration->share[SHARE_WAIT];
        view->transfer_s += iteration->share[SHARE_TRANSFER];
        view->queued_s += iteration->share[SHARE_QUEUED];
        view->idle_s += speed_idle(iteration);
        kernels += iteration->kernels;
        uint64_t began_ns = iteration->end_ns - (uint64_t)(1e9 * iteration->length);
        view->delay_s +=
            speed_run_delays(speed, rank->key.process, began_ns, iteration->end_ns).waited;
        view->recorded_s += iteration->length;
    }
    view->iterations = count;
    view->has_compute = kernels > 0;
    if (!count)
        return;
    view->mean_s = view->recorded_s / (double)count;
    view->delay_s /= (double)count;
    view->is_hidden = is_hidden(speed, rank);
    view->compute_s /= (double)count;
    view->wait_s /= (double)count;
    view->transfer_s /= (double)count;
    view->queued_s /= (double)count;
    view->idle_s /= (double)count;
    view->median_s = speed_median(length, count);
    view->p99_s = length[(count * 99 + 99) / 100 - 1];
}

int analyzer_visit_speed(struct analyzer *analyzer,
                         void (*visit)(void *context, const struct speed_view *view), void *context)
{
    struct speed *speed = analyzer->slot.speed;
    uint32_t count = speed ? speed->count : 0;
    struct speed_rank **rank = malloc((count + 1) * sizeof *rank);
    double *length = malloc(ITERATIONS_KEPT * sizeof *length);
    struct speed_view view;
    uint32_t seen = 0;
    for (uint32_t i = 0; rank && i < count; i++)
        if (speed->rank[i]->member)
            rank[seen++] = speed->rank[i];
    if (rank && seen)
        qsort(rank, seen, sizeof *rank, compare_shown);
    for (uint32_t i = 0; rank && length && i < seen; i++) {
        view_rank(speed, rank[i], length, &view);
        if (view.iterations)
            visit(context, &view);
    }
    int result = rank && length ? 0 : -1;
    free(rank);
    free(length);
    if (result)
        errno = ENOMEM;
    return result;
}

static void add_bandwidth(struct speed_class_view *view)
{
    double moved = speed_moved_bytes(view->api, view->nranks, (double)view->bytes, &view->bus);
    if (view->mean_s <= 0)
        return;
    view->algorithm = moved / view->mean_s;
    view->bus /= view->mean_s;
}

struct class_views {
    struct speed_class_view *view;
    uint32_t count, capacity;
};

static int add_class(struct class_views *views, const struct speed_class *class)
{
    double mean = class->seconds / (double)class->count;
    bool is_sum = class->comms;
    double least = is_sum ? class->least : mean;
    double most = is_sum ? class->most : mean;
    uint32_t i = 0;
    while (i < views->count &&
           (views->view[i].api != class->key.api || views->view[i].nranks != class->key.nranks ||
            views->view[i].bytes != class->key.bytes))
        i++;
    if (i == views->count) {
        struct speed_class_view *grown =
            array_room(views->view, sizeof *grown, views->count, &views->capacity, 16);
        if (!grown)
            return -1;
        views->view = grown;
        grown[views->count++] = (struct speed_class_view){.api = (unsigned)class->key.api,
                                                          .nranks = class->key.nranks,
                                                          .bytes = class->key.bytes,
                                                          .least_s = least,
                                                          .most_s = most};
    }
    struct speed_class_view *view = &views->view[i];
    view->count += class->count;
    view->comms += class->comms ? class->comms : 1;
    view->mean_s += class->seconds; /* the sum, until all are known */
    view->least_s = least < view->least_s ? least : view->least_s;
    view->most_s = most > view->most_s ? most : view->most_s;
    return 0;
}

static int compare_classes(const void *a, const void *b)
{
    const struct speed_class_view *left = a, *right = b;
    return (left->mean_s < right->mean_s) - (left->mean_s > right->mean_s);
}

int analyzer_visit_speed_classes(struct analyzer *analyzer,
                                 void (*visit)(void *context, const struct speed_class_view *view),
                                 void *context)
{
    struct class_views views = {0};
    int result = 0;
    struct speed_comm *comm = analyzer->slot.speed ? analyzer->slot.speed->comms : NULL;
    for (; comm; comm = comm->hh.next)
        for (struct speed_class *class = comm->classes; class && !result; class = class->hh.next)
            result = add_class(&views, class);
    const struct speed_class *forgotten = analyzer->slot.speed ? analyzer->slot.speed->forgotten
                                                               : NULL;
    for (; forgotten && !result; forgotten = forgotten->hh.next)
        result = add_class(&views, forgotten);
    if (views.count)
        qsort(views.view, views.count, sizeof *views.view, compare_classes);
    for (uint32_t i = 0; i < views.count && !result; i++) {
        views.view[i].mean_s /= (double)views.view[i].count;
        add_bandwidth(&views.view[i]);
        visit(context, &views.view[i]);
    }
    free(views.view);
    return result;
}
