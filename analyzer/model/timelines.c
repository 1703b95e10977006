/* timelines.c: tracks the streams of a process and their handles. */
#include "analyzer/model/timelines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/devices.h"
#include "analyzer/model/order.h"
#include "analyzer/model/progress.h"
#include "lib/base/invariant.h"

enum { HANDLE_DEFAULT = 0, HANDLE_LEGACY = 1, HANDLE_PER_THREAD = 2 };
enum { TIMELINES_GONE_MAX = 1024 };

static struct stream_key key_of(const struct record *record)
{
    struct stream_key key = {.handle = record->stream};
    if (key.handle == HANDLE_LEGACY)
        key.handle = HANDLE_DEFAULT;
    if (key.handle == HANDLE_DEFAULT || key.handle == HANDLE_PER_THREAD)
        key.device = (uint32_t)record->device;
    if (key.handle == HANDLE_PER_THREAD)
        key.thread = record->thread;
    return key;
}

bool order_is_default(const struct stream_state *stream)
{
    return stream->key.handle == HANDLE_DEFAULT;
}

bool timeline_is_of_thread(uint64_t handle)
{
    return handle == HANDLE_PER_THREAD;
}

bool timeline_is_captured(const struct stream_state *stream)
{
    return stream->is_captured;
}

/* Index of the first timeline that is not below. */
static uint32_t timeline_at_or_after(const struct process *process, uint64_t timeline)
{
    uint32_t low = 0, high = process->order.timelines;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (process->order.timeline[middle]->timeline < timeline)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct stream_state *timeline_find(const struct process *process, uint64_t timeline)
{
    uint32_t i = timeline_at_or_after(process, timeline);
    return i < process->order.timelines && process->order.timeline[i]->timeline == timeline
               ? process->order.timeline[i]
               : NULL;
}

struct stream_state *timeline_new(struct process *process, const struct stream_key *key, int device)
{
    struct stream_state **grown = array_room(process->order.timeline, sizeof(*grown),
                                             process->order.timelines,
                                             &process->order.timeline_capacity, 8);
    if (!grown)
        return NULL;
    process->order.timeline = grown;
    struct stream_state *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->key = *key;
    stream->device = device;
    stream->timeline = ++process->order.last_timeline;
    invariant(!process->order.timelines ||
                  process->order.timeline[process->order.timelines - 1]->timeline <
                      stream->timeline,
              "timelines are in the order of their making");
    process->order.timeline[process->order.timelines++] = stream;
    return stream;
}

void timeline_free(struct process *process, struct stream_state *stream)
{
    uint32_t i = timeline_at_or_after(process, stream->timeline);
    invariant(i < process->order.timelines && process->order.timeline[i] == stream,
              "a stream that ends is one of its process");
    invariant(!stream->gone || process->order.gone_streams, "streams that are gone are counted");
    memmove(&process->order.timeline[i], &process->order.timeline[i + 1],
            (--process->order.timelines - i) * sizeof(*process->order.timeline));
    process->order.gone_streams -= stream->gone;
    progress_forget(process, stream);
    clock_free(&stream->ahead);
    free(stream);
}

struct stream_state *timeline_get(struct process *process, const struct record *record)
{
    struct stream_key key = key_of(record);
    struct stream_state *stream;
    TABLE_FIND(process->order.streams, &key, stream);
    if (stream)
        return stream;
    errno = 0;
    struct device_state *device = device_get(process, record->device);
    stream = device || errno != ENOMEM ? timeline_new(process, &key, record->device) : NULL;
    if (!stream)
        return NULL;
    TABLE_ADD(process->order.streams, key, stream);
    if (!TABLE_ADDED(stream)) {
        timeline_free(process, stream);
        return NULL;
    }
    stream->known = stream->blocking = key.handle <= HANDLE_PER_THREAD;
    if (device)
        stream->seen = device->seen; /* it may have been there for long */
    if (device && order_is_default(stream))
        device->legacy = stream;
    return stream;
}

void timeline_end(struct process *process, const struct record *record)
{
    struct stream_key key = key_of(record);
    struct stream_state *stream;
    TABLE_FIND(process->order.streams, &key, stream);
    if (!stream || key.handle <= HANDLE_PER_THREAD)
        return;
    HASH_DEL(process->order.streams, stream);
    invariant(!stream->gone, "a stream that is gone has no handle");
    stream->gone = true;
    stream->capture = NULL;
    process->order.gone_streams++;
    invariant(process->order.gone_streams <= process->order.timelines,
              "each stream that is gone keeps its timeline until its work is done");
    timelines_reap(process);
}

void timelines_reap(struct process *process)
{
    for (uint32_t i = 0; i < process->order.timelines && process->order.gone_streams;) {
        struct stream_state *stream = process->order.timeline[i];
        if (stream->gone &&
            (stream->seen >= stream->position || process->order.gone_streams > TIMELINES_GONE_MAX))
            timeline_free(process, stream);
        else
            i++;
    }
}

int timeline_into(const struct process *process, const struct stream_state *stream,
                  struct clock *clock)
{
    return clock_merge(clock, &stream->ahead)
               ? -1
               : clock_raise(clock, (struct place){stream->timeline, process->now});
}

/* Work on the legacy default stream comes after all that is on the other blocking streams of its
 * device. */
static int join_all(struct process *process, struct stream_state *legacy)
{
    legacy->joined = process->now;
    for (uint32_t i = 0; i < process->order.timelines; i++) {
        const struct stream_state *other = process->order.timeline[i];
        if (other == legacy || other->device != legacy->device || other->is_captured)
            continue;
        if (!other->known)
            clock_raise_unknown(&legacy->ahead, process->now);
        else if (other->blocking && timeline_into(process, other, &legacy->ahead))
            return -1;
    }
    return 0;
}

int timeline_join_legacy(struct process *process, struct stream_state *stream)
{
    if (stream->is_captured)
        return 0;
    if (order_is_default(stream))
        return join_all(process, stream);
    const struct device_state *device =
        stream->blocking || !stream->known ? device_find(process, stream->device) : NULL;
    struct stream_state *legacy = device ? device->legacy : NULL;
    if (!legacy || legacy->joined == stream->joined)
        return 0;
    stream->joined = legacy->joined;
    if (!stream->known) {
        clock_raise_unknown(&stream->ahead, legacy->joined);
        return 0;
    }
    timelines_prune(process, &legacy->ahead);
    return clock_merge(&stream->ahead, &legacy->ahead) ||
                   clock_raise(&stream->ahead, (struct place){legacy->timeline, legacy->joined})
               ? -1
               : 0;
}

int order_join(struct process *process, struct stream_state *const *stream, uint32_t count,
               uint64_t position)
{
    struct clock all = {0};
    int result = 0;
    for (uint32_t i = 0; i < count && !result; i++) {
        result = timeline_join_legacy(process, stream[i]);
        timelines_prune(process, &stream[i]->ahead);
        if (!result)
            result = clock_merge(&all, &stream[i]->ahead) ||
                             clock_raise(&all, (struct place){stream[i]->timeline, position})
                         ? -1
                         : 0;
    }
    for (uint32_t i = 0; i < count && !result; i++)
        result = clock_merge(&stream[i]->ahead, &all);
    clock_free(&all);
    return result;
}

void timeline_seen(struct process *process, const struct place *place)
{
    struct stream_state *stream = timeline_find(process, place->timeline);
    if (!stream || stream->seen >= place->position)
        return;
    stream->seen = place->position;
    process->order.seen_version++;
    progress_seen(stream);
}

void timelines_watched(struct process *process, const struct clock *clock)
{
    for (uint32_t i = 0; i < clock->count; i++) {
        struct stream_state *stream = timeline_find(process, clock->entry[i].timeline);
        if (!stream || stream->watched >= clock->entry[i].position)
            continue;
        stream->watched = clock->entry[i].position;
        progress_seen(stream);
    }
    if (process->order.watched_unknown < clock->unknown)
        process->order.watched_unknown = clock->unknown;
    process->order.has_watched = true;
}

void timelines_hand_over(struct process *process)
{
    if (!process->order.has_watched)
        return;
    process->order.has_watched = false;
    for (uint32_t i = 0; i < process->order.timelines; i++) {
        const struct stream_state *stream = process->order.timeline[i];
        timeline_seen(process, &(struct place){stream->timeline, stream->watched});
    }
    if (process->order.unknown < process->order.watched_unknown)
        process->order.unknown = process->order.watched_unknown;
    timelines_reap(process);
}

void timelines_prune(const struct process *process, struct clock *clock)
{
    if (clock->pruned == process->order.seen_version)
        return;
    clock->pruned = process->order.seen_version;
    uint32_t kept = 0, t = 0;
    for (uint32_t i = 0; i < clock->count; i++) {
        const struct place *place = &clock->entry[i];
        while (t < process->order.timelines &&
               process->order.timeline[t]->timeline < place->timeline)
            t++;
        bool is_past = t == process->order.timelines ||
                       process->order.timeline[t]->timeline != place->timeline ||
                       process->order.timeline[t]->seen >= place->position;
        if (!is_past)
            clock->entry[kept++] = *place;
    }
    clock->version += kept != clock->count;
    clock->count = kept;
}

void timelines_free(struct process *process)
{
    HASH_CLEAR(hh, process->order.streams);
    for (uint32_t i = 0; i < process->order.timelines; i++) {
        progress_forget(process, process->order.timeline[i]);
        clock_free(&process->order.timeline[i]->ahead);
        free(process->order.timeline[i]);
    }
    free(process->order.timeline);
}
