/* pending_index.c: finds the operations on a stream that are not done. */
#include "analyzer/hang/pending_index.h"

#include <stdlib.h>

#include "analyzer/model/progress.h"
#include "lib/base/invariant.h"

enum {
    MOST_OF_A_STREAM = 4096,
    LEAST_CAPACITY = 256
}; /* later ones are not found: they count as done */

struct pending_index {
    const struct pending **entry; /* open addressing */
    uint32_t count, capacity;
    bool *taken; /* by process */
};

struct pending_index *pending_index_new(const struct analyzer *analyzer)
{
    struct pending_index *index = calloc(1, sizeof *index);
    if (!index)
        return NULL;
    index->taken = calloc((size_t)analyzer->processes + 1, sizeof *index->taken);
    if (!index->taken) {
        free(index);
        return NULL;
    }
    return index;
}

void pending_index_free(struct pending_index *index)
{
    if (!index)
        return;
    free(index->entry);
    free(index->taken);
    free(index);
}

static uint64_t hash_of(const struct member *member, const struct channel *channel, bool receives,
                        uint64_t number)
{
    uint64_t hash = (uintptr_t)member ^ (uintptr_t)channel * 31 ^ number << 1 ^ receives;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static bool is_it(const struct pending *pending, const struct member *member,
                  const struct channel *channel, bool receives, uint64_t number)
{
    return pending->member == member && pending->number == number && pending->channel == channel &&
           pending->receives == receives;
}

static void pending_put(struct pending_index *index, const struct pending *pending)
{
    uint64_t place = hash_of(pending->member, pending->channel, pending->receives, pending->number);
    invariant(index->count < index->capacity, "an index that is searched has a free place");
    while (index->entry[place & (index->capacity - 1)])
        place++;
    index->entry[place & (index->capacity - 1)] = pending;
    index->count++;
}

static int grow(struct pending_index *index)
{
    struct pending_index grown = {.capacity = index->capacity ? 2 * index->capacity
                                                              : LEAST_CAPACITY};
    grown.entry = calloc(grown.capacity, sizeof(*grown.entry));
    if (!grown.entry)
        return -1;
    for (uint32_t i = 0; i < index->capacity; i++)
        if (index->entry[i])
            pending_put(&grown, index->entry[i]);
    free(index->entry);
    index->entry = grown.entry;
    index->capacity = grown.capacity;
    return 0;
}

static int pending_take(void *context, const struct pending *pending)
{
    struct pending_index *index = context;
    if (2 * (index->count + 1) > index->capacity && grow(index))
        return -1;
    pending_put(index, pending);
    return 0;
}

int pending_index_find(struct pending_index *index, const struct member *member,
                       const struct channel *channel, bool receives, uint64_t number,
                       const struct pending **found)
{
    struct process *process = member->process;
    *found = NULL;
    if (!index->taken[process->index]) {
        index->taken[process->index] = true;
        if (progress_visit_first(process, MOST_OF_A_STREAM, pending_take, index))
            return -1;
    }
    if (!index->capacity)
        return 0;
    uint64_t place = hash_of(member, channel, receives, number);
    for (; index->entry[place & (index->capacity - 1)]; place++)
        if (is_it(index->entry[place & (index->capacity - 1)], member, channel, receives, number)) {
            *found = index->entry[place & (index->capacity - 1)];
            return 0;
        }
    return 0;
}
