/* dead_streams.c: remembers destroyed streams until their handles are used again. */
#include "analyzer/model/dead_streams.h"

#include <stdlib.h>

#include "analyzer/model/process.h"
#include "analyzer/model/table.h"
#include "lib/base/invariant.h"

enum { DEAD_STREAMS_MAX = 1024, HANDLE_PER_THREAD = 2 };

struct dead_stream {
    uint64_t handle;
    struct site site;
    UT_hash_handle hh;
};

static struct dead_stream *dead_stream_find(const struct process *process, uint64_t handle)
{
    struct dead_stream *dead;
    TABLE_FIND(process->order.dead_streams, &handle, dead);
    return dead;
}

static void drop(struct process *process, struct dead_stream *dead)
{
    HASH_DEL(process->order.dead_streams, dead);
    free(dead);
}

void dead_streams_revive(struct process *process, uint64_t handle)
{
    struct dead_stream *dead = dead_stream_find(process, handle);
    if (dead)
        drop(process, dead);
}

int dead_streams_feed(const struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    dead_streams_revive(process, record->stream);
    if (record->api != API_cudaStreamDestroy || record->result != 0 ||
        record->stream <= HANDLE_PER_THREAD)
        return 0;
    if (HASH_COUNT(process->order.dead_streams) >= DEAD_STREAMS_MAX)
        drop(process, process->order.dead_streams);
    struct dead_stream *dead = calloc(1, sizeof *dead);
    if (!dead)
        return -1;
    invariant(HASH_COUNT(process->order.dead_streams) < DEAD_STREAMS_MAX,
              "a process keeps DEAD_STREAMS_MAX destroyed streams");
    dead->handle = record->stream;
    dead->site = event->site;
    TABLE_ADD(process->order.dead_streams, handle, dead);
    if (TABLE_ADDED(dead))
        return 0;
    free(dead);
    return -1;
}

const struct site *dead_streams_find(const struct process *process, uint64_t handle)
{
    const struct dead_stream *dead = process->order.dead_streams ? dead_stream_find(process, handle)
                                                                 : NULL;
    return dead ? &dead->site : NULL;
}

void dead_streams_free(struct process *process)
{
    while (process->order.dead_streams)
        drop(process, process->order.dead_streams);
}
