#include "analyzer/inflight.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/array.h"
#include "analyzer/progress.h"
#include "analyzer/streams.h"

enum { RANGES_MAX = 4096, SWEEP_LEAST = 64 };

static void range_release(struct inflight_range *range)
{
    if (!--range->flight->ranges)
        free(range->flight);
}

static void set_reach(struct inflight *inflight, uint32_t from)
{
    uint64_t reach = from ? inflight->range[from - 1].reach : 0;
    for (uint32_t i = from; i < inflight->count; i++) {
        if (reach < inflight->range[i].end)
            reach = inflight->range[i].end;
        inflight->range[i].reach = reach;
    }
}

/* Removes the ranges for which `goes` is true. */
static void remove_where(struct inflight *inflight, bool (*goes)(void *context, const struct inflight_range *range),
                         void *context)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < inflight->count; i++) {
        if (goes(context, &inflight->range[i]))
            range_release(&inflight->range[i]);
        else
            inflight->range[kept++] = inflight->range[i];
    }
    bool changed = kept != inflight->count;
    inflight->count = kept;
    if (changed)
        set_reach(inflight, 0);
}

static bool was_seen(void *process, const struct inflight_range *range)
{
    return progress_was_seen(process, &range->flight->place);
}

static bool is_older(void *order, const struct inflight_range *range)
{
    return range->order < *(const uint64_t *)order;
}

/* What the host has seen done goes first; then, if that was too little, the older half. */
static void make_room(struct process *process, struct inflight *inflight)
{
    if (inflight->count < inflight->sweep_at)
        return;
    remove_where(inflight, was_seen, process);
    if (inflight->count >= RANGES_MAX) {
        uint64_t middle = inflight->issued - RANGES_MAX / 2;
        remove_where(inflight, is_older, &middle);
    }
    inflight->sweep_at = 2 * inflight->count;
    if (inflight->sweep_at > RANGES_MAX)
        inflight->sweep_at = RANGES_MAX;
    if (inflight->sweep_at < SWEEP_LEAST)
        inflight->sweep_at = SWEEP_LEAST;
}

/* Index of the first range that begins at or after the address. */
static uint32_t lower_bound(const struct inflight *inflight, uint64_t address)
{
    uint32_t low = 0, high = inflight->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (inflight->range[middle].begin < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int grow(struct inflight *inflight)
{
    struct inflight_range *grown = array_room(inflight->range, sizeof *grown, inflight->count, &inflight->capacity, 16);
    if (!grown)
        return -1;
    inflight->range = grown;
    return 0;
}

static int add_range(struct process *process, struct inflight *inflight, struct inflight_range added)
{
    make_room(process, inflight);
    added.order = inflight->issued++;
    added.flight->ranges++;
    uint32_t at = lower_bound(inflight, added.begin);
    for (uint32_t i = at; i < inflight->count && inflight->range[i].begin == added.begin; i++) {
        struct inflight_range *same = &inflight->range[i];
        if (same->end != added.end || same->written != added.written ||
            same->flight->place.slot != added.flight->place.slot)
            continue;
        added.reach = same->reach;
        range_release(same);
        *same = added;
        return 0;
    }
    if (grow(inflight)) {
        added.flight->ranges--;
        return -1;
    }
    memmove(&inflight->range[at + 1], &inflight->range[at], (inflight->count++ - at) * sizeof *inflight->range);
    inflight->range[at] = added;
    set_reach(inflight, at);
    return 0;
}

static bool make_range(uint64_t pointer, uint64_t bytes, bool written, struct inflight_range *range)
{
    *range = (struct inflight_range){.begin = pointer, .written = written};
    return pointer && bytes && !__builtin_add_overflow(pointer, bytes, &range->end);
}

int inflight_add(struct process *process, struct inflight *inflight, const struct operation *operation)
{
    const struct record *record = &operation->record;
    struct op_extent extent;
    if (!operation->place.launch || !op_extent_of(record, operation->member->comm->nranks, &extent))
        return 0;
    struct inflight_range send, recv;
    bool writes = make_range(record->op.recvbuff, extent.recv_bytes, true, &recv);
    bool reads = make_range(record->op.sendbuff, extent.send_bytes, false, &send);
    if (writes && reads && send.begin >= recv.begin && send.end <= recv.end)
        reads = false;          /* in place */
    if (!writes && !reads)
        return 0;
    const struct stream_state *stream = stream_get(process, record);
    struct flight *flight = stream ? malloc(sizeof *flight) : NULL;
    if (!flight)
        return -1;
    *flight = (struct flight){
        .ranges = 1, .place = operation->place, .member = operation->member, .record = *record,
        .site = operation->site, .default_puts = process->default_puts - stream_is_default(stream),
    };
    send.flight = recv.flight = flight;
    int result = writes ? add_range(process, inflight, recv) : 0;
    if (!result && reads)
        result = add_range(process, inflight, send);
    if (!--flight->ranges)
        free(flight);
    return result;
}

/* Whether a row of the stretch and the range, which lies between its ends in part, have bytes in common. */
static bool meets(const struct stretch *stretch, const struct inflight_range *range)
{
    if (stretch->pitch <= stretch->width)
        return true;
    uint64_t first_end = stretch->begin + stretch->width, row = 0;
    if (range->begin >= first_end)
        row = (range->begin - first_end) / stretch->pitch + 1;
    uint64_t offset;
    return !__builtin_mul_overflow(row, stretch->pitch, &offset) && offset < range->end - stretch->begin &&
           offset < stretch->end - stretch->begin;
}

/* By CUDA's rules alone: the same stream, events, the default stream's order, host waits. That it happens to be
 * done (progress) orders nothing. Of a stream that waited for an event nobody saw recorded nothing is known; if
 * the creation of a stream was not seen, any work on the legacy default stream may order. */
static bool may_still_run(struct process *process, const struct flight *flight, const struct stream_state *stream)
{
    return !stream->partial && clock_at(&stream->ahead, flight->place.slot) < flight->place.launch &&
           !progress_was_seen(process, &flight->place) &&
           (process->default_puts == flight->default_puts || streams_are_known(process));
}

static bool is_better(const struct inflight_range *range, const struct inflight_range *than)
{
    if (!than || range->written != than->written)
        return !than || range->written;
    return range->order > than->order;
}

const struct inflight_range *inflight_meets(struct process *process, const struct inflight *inflight,
                                            const struct stretch *stretch, const struct stream_state *stream)
{
    const struct inflight_range *found = NULL;
    for (uint32_t i = lower_bound(inflight, stretch->end); i > 0 && inflight->range[i - 1].reach > stretch->begin; i--) {
        const struct inflight_range *range = &inflight->range[i - 1];
        if (range->end > stretch->begin && is_better(range, found) && meets(stretch, range) &&
            may_still_run(process, range->flight, stream))
            found = range;
    }
    return found;
}

static bool lies_in(void *context, const struct inflight_range *range)
{
    const struct stretch *stretch = context;
    return range->begin < stretch->end && range->end > stretch->begin;
}

void inflight_forget_memory(struct inflight *inflight, uint64_t begin, uint64_t end)
{
    struct stretch stretch = {.begin = begin, .end = end};
    remove_where(inflight, lies_in, &stretch);
}

static bool is_on_stream(void *handle, const struct inflight_range *range)
{
    return range->flight->record.stream == *(const uint64_t *)handle;
}

void inflight_forget_stream(struct inflight *inflight, uint64_t handle)
{
    remove_where(inflight, is_on_stream, &handle);
}

static bool is_of_comm(void *id, const struct inflight_range *range)
{
    return range->flight->record.op.comm == *(const uint64_t *)id;
}

void inflight_forget_comm(struct inflight *inflight, uint64_t comm)
{
    remove_where(inflight, is_of_comm, &comm);
}

static bool always(void *context, const struct inflight_range *range)
{
    (void)context;
    (void)range;
    return true;
}

void inflight_clear(struct inflight *inflight)
{
    remove_where(inflight, always, NULL);
    free(inflight->range);
    *inflight = (struct inflight){0};
}
