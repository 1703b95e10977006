/* watched.c: lists the communicators that ticks look at. */
#include "analyzer/model/watched.h"

#include <stdlib.h>

#include "analyzer/model/array.h"
#include "lib/base/invariant.h"

void comm_watch(struct comm *comm)
{
    struct analyzer *analyzer = comm->analyzer;
    if (comm->is_watched)
        return;
    struct comm **grown = array_room(analyzer->watched.comm, sizeof(*grown),
                                     analyzer->watched.count, &analyzer->watched.capacity, 8);
    if (!grown) {
        analyzer->failed = true;
        return;
    }
    analyzer->watched.comm = grown;
    analyzer->watched.comm[analyzer->watched.count++] = comm;
    analyzer->watched.is_sorted = false;
    comm->is_watched = true;
}

void comm_note_end(struct comm *comm)
{
    comm->has_ended = true;
    comm_watch(comm);
}

static int compare_creation(const void *a, const void *b)
{
    const struct comm *const *left = a, *const *right = b;
    return ((*left)->order > (*right)->order) - ((*left)->order < (*right)->order);
}

struct comm *comm_watched(struct analyzer *analyzer, uint32_t i)
{
    if (!analyzer->watched.is_sorted && analyzer->watched.count)
        qsort(analyzer->watched.comm, analyzer->watched.count, sizeof *analyzer->watched.comm,
              compare_creation);
    analyzer->watched.is_sorted = true;
    invariant(!i || i >= analyzer->watched.count ||
                  analyzer->watched.comm[i - 1]->order < analyzer->watched.comm[i]->order,
              "no communicator is watched twice");
    return i < analyzer->watched.count ? analyzer->watched.comm[i] : NULL;
}
