/* ras_status.h: what NCCL's RAS says of a job, from its JSON (`ncclras -f json`, NCCL 2.28.7 and
 * later).
 *
 * Pure: JSON in, plain values out (NCCL's src/ras/client_support.cc, rasDumpCommsToJSON). RAS
 * counts, for each rank of each communicator, how many collectives of each kind it has launched;
 * those inside of CUDA graphs are not counted. */
#ifndef DDPCHECK_IMPORT_RAS_STATUS_H
#define DDPCHECK_IMPORT_RAS_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"

enum { RAS_KINDS = 16 }; /* numbers of collectives (apis.def) are below it */

struct ras_rank {
    int rank, pid, device; /* pid, device: -1 not known */
    char host[64];
    bool missing; /* it gave no answer: only unresponsive and dead are known besides */
    bool unresponsive, dead;
    bool finalized, destroyed, aborted;
    int init_state, async_error; /* ncclResult_t; 7 is ncclInProgress */
    uint64_t count[RAS_KINDS];   /* by the collective's api */
    uint64_t total;
};

struct ras_comm {
    uint64_t hash;      /* NCCL's commHash: what its log prints as commId */
    char secondary[48]; /* "0xhost:0xpid": differs between communicators of one hash */
    int size;
    struct ras_rank *rank;
    int ranks;
};

struct ras_status {
    char version[32]; /* "2.28.9" */
    uint64_t time_ns; /* realtime, of its time stamp, which is in the job's local time; 0 none */
    uint64_t
        exact_ns; /* ddpcheck's own, written before a snapshot by `ddpcheck tui --ras`; 0 none */
    struct ras_comm *comm;
    int comms;
};

struct json_t;

/* Reads a document. Returns 0 (ras_status_free it), or -1 with err: it is none of RAS's, or
 * damaged. A rank without a number is left out. */
int ras_status_parse(const struct json_t *document, struct ras_status *status, struct error *err);
void ras_status_free(struct ras_status *status);

#endif
