/* tracks.c: assigns streams and host threads to the tracks of a timeline. */
#include "cmd/export/tracks.h"

#include <stdlib.h>

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
