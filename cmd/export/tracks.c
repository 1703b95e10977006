/* tracks.c: what the timelines for Chrome and Perfetto share: tracks for streams and host threads,
 * and calls as PyTorch's profiler names them. */
#include "cmd/export/tracks.h"

#include <stdlib.h>

#include "lib/trace/kind_names.h"

static struct track *find_track(struct tracks *tracks, const struct track *like, bool *is_new)
{
    struct track *track;
    HASH_FIND(hh, tracks->track, &like->key, sizeof like->key, track);
    *is_new = !track;
    if (track || !(track = calloc(1, sizeof *track)))
        return track;
    track->key = like->key;
    track->number = ++tracks->count;
    HASH_ADD(hh, tracks->track, key, sizeof track->key, track);
    return track;
}

struct track *tracks_operation(struct tracks *tracks, int process, const struct record *call,
                               bool *is_new)
{
    return find_track(tracks,
                      &(struct track){.key = {(uint64_t)process, call->op.comm, call->stream,
                                              (uint64_t)call->op.rank, 0}},
                      is_new);
}

struct track *tracks_thread(struct tracks *tracks, int process, uint32_t thread, bool *is_new)
{
    return find_track(
        tracks, &(struct track){.key = {(uint64_t)process, 0, 0, 0, (uint64_t)thread + 1}}, is_new);
}

void tracks_free(struct tracks *tracks)
{
    struct track *track, *next;
    HASH_ITER(hh, tracks->track, track, next) {
        HASH_DEL(tracks->track, track);
        free(track);
    }
}

/* --- calls of the profiler --- */

const char *kineto_collective(unsigned api)
{
    const char *name = kind_name_of(KIND_KINETO, api);
    return name ? name : "unknown";
}

const char *kineto_dtype(unsigned datatype)
{
    return datatype_torch_name(datatype);
}

/* The count of one rank's part, or of the parts of all. */
static uint64_t elements_moved(const struct record *call, bool all, int nranks)
{
    return all && nranks > 0 ? call->op.count * (uint64_t)nranks : call->op.count;
}

uint64_t kineto_in(const struct record *call, int nranks)
{
    const struct kind *kind = kind_find(call->api);
    return elements_moved(call, kind && kind_share_is_all(kind->send), nranks);
}

uint64_t kineto_out(const struct record *call, int nranks)
{
    const struct kind *kind = kind_find(call->api);
    return elements_moved(call, kind && kind_share_is_all(kind->recv), nranks);
}
