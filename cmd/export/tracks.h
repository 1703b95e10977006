/* tracks.h: what lies side by side in a timeline: the streams of each communicator, and host
 * threads, of each process. */
#ifndef DDPCHECK_EXPORT_TRACKS_H
#define DDPCHECK_EXPORT_TRACKS_H

#include <stdbool.h>
#include <stdint.h>
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

/* What torch.profiler (Kineto) calls things, so that scripts for its traces read ours. */

/* "allreduce", "_allgather_base", "send": the "Collective name" that ProcessGroupNCCL gives to this
 * NCCL call. */
const char *kineto_collective(unsigned api);

/* "Float", "BFloat16": "dtype"; "" where there is none. */
const char *kineto_dtype(unsigned datatype);

/* Elements that one rank gives and gets: "In msg nelems", "Out msg nelems". */
uint64_t kineto_in(const struct record *call, int nranks);
uint64_t kineto_out(const struct record *call, int nranks);

#endif
