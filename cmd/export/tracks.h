/* tracks.h: what lies side by side in a timeline: the streams of each communicator, and host
 * threads, of each process. */
#ifndef DDPCHECK_EXPORT_TRACKS_H
#define DDPCHECK_EXPORT_TRACKS_H

#include <stdbool.h>

#include <uthash.h>

#include "lib/trace/record.h"

struct track {
    struct {
        uint64_t process, comm, stream, rank, thread;
    } key;
    int number; /* 1, 2, ... in the order in which they were met */
    UT_hash_handle hh;
};

struct tracks {
    struct track *track;
    int count;
};

/* The track of an operation, or of a host thread; *is_new: it was not met before. NULL:
 * memory is short. */
struct track *tracks_operation(struct tracks *tracks, int process, const struct record *call,
                               bool *is_new);
struct track *tracks_thread(struct tracks *tracks, int process, uint32_t thread, bool *is_new);
void tracks_free(struct tracks *tracks);

#endif
