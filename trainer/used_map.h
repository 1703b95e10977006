/* used_map.h: which parameters got a gradient on some rank (find_unused_parameters).
 *
 * A parameter that this rank did not use may have been used by another, and then has an averaged
 * gradient here as well. One AllReduce of a small integer per parameter shows this; its answer is
 * fetched only by ranks that left a parameter out. As in DistributedDataParallel the marks also
 * count passes that only accumulate (no_sync). */
#ifndef DDPTRAIN_USED_MAP_H
#define DDPTRAIN_USED_MAP_H

#include <stdbool.h>

#include "trainer/communicator.h"
#include "trainer/module.h"

struct used_map {
    int count;
    bool here[MODULE_MAX_PARAMETERS]; /* used by this rank since the last reduction */
    bool left_out;                    /* what was reduced last lacked a parameter on this rank */
    int32_t *mine, *ranks; /* pinned host memory: what is sent, and how many ranks used each */
    int32_t *device;       /* device memory of the same */
    cudaEvent_t done;      /* the answer is in `ranks` */
};

void used_map_open(struct used_map *map, int count);
void used_map_close(struct used_map *map);
void used_map_mark(struct used_map *map, int parameter);
void used_map_forget(struct used_map *map);
/* Enqueues the AllReduce on the communicator's stream, collectively, and forgets the marks. */
void used_map_reduce(struct used_map *map, struct communicator *communicator);
/* Blocks the host until the answer of the last used_map_reduce() is there. */
void used_map_wait(struct used_map *map);
/* After used_map_wait(): whether any rank used the parameter. */
bool used_map_anywhere(const struct used_map *map, int parameter);

#endif
