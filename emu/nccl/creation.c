/* creation.c: the parts that all ways to create a communicator share. */
#include "emu/nccl/creation.h"

#include <stdlib.h>

#include "emu/nccl/profiler.h"

void creation_begin(struct creation *creation, struct ncclComm *comm, ncclComm_t *slot,
                    bool blocking)
{
    creation->comm = comm;
    creation->slot = slot;
    creation->job.blocking = blocking;
    communicator_hold(comm);
    *slot = comm;
}

ncclResult_t creation_end(struct creation *creation, ncclResult_t result)
{
    struct ncclComm *comm = creation->comm;

    if (!comm)
        return result;
    if (!result)
        profiler_attach(comm);
    if (result && creation->job.blocking) {
        *creation->slot = NULL;
        communicator_retire(comm);
    }
    atomic_store(&comm->state, (int)result);
    return result;
}

void creation_release(struct creation *creation)
{
    struct ncclComm *comm = creation->comm;

    if (!comm)
        return;
    /* The group failed before the job could run. */
    if (atomic_load(&comm->state) == ncclInProgress) {
        creation->job.blocking = true;
        creation_end(creation, ncclInvalidUsage);
    }
    communicator_put(comm);
}
