/* kineto.h: what the two halves of the reader of torch.profiler's traces share: kineto.c reads a
 * file and keeps what concerns collectives, kineto_emit.c imports it in the
 * order of time. */
#ifndef DDPCHECK_KINETO_H
#define DDPCHECK_KINETO_H

#include "lib/import/import.h"
#include "lib/import/kineto_group.h"
#include "lib/import/kineto_stage.h"

enum { KINETO_PENDING_MAX = 4096 };

/* One file. */
struct kineto {
    struct import *import;
    struct import_input *input;
    const char *path;
    struct json_stream *json;
    struct kineto_stage *stage;
    struct kineto_groups groups;
    struct kineto_event event;
    int64_t base_ns, rank, world_size, pid;
    int nccl_version;
    int64_t last_ns, step_ns; /* the last event; the first ProfilerStep (KINETO_UNKNOWN none) */
    uint64_t events, calls, gloo;
    uint64_t unnamed, old; /* calls, and NCCL's other rows, that are only known to exist */
    bool has_seq, has_address;
    /* what follows is used when the file has been read */
    int process;
    uint64_t joined, lonely; /* kernels with and without their call */
    uint64_t group;          /* of calls that are launched together */
    struct pending {         /* sends and receives, until it is known whether they are one group */
        struct import_call call;
        int64_t external;
    } pending[KINETO_PENDING_MAX];
    int pendings;
    struct launch { /* calls whose kernels have not ended yet */
        int64_t external;
        struct import_launch launch;
        UT_hash_handle hh;
    } * launches;
    struct error err;
};

/* Imports what was kept, also of a file that ended in the middle. Returns 0, or -1 with err.
 */
int kineto_emit(struct kineto *kineto, struct error *err);
void kineto_forget_launches(struct kineto *kineto);

#endif
