/* registrations.c: registers and deregisters buffers and windows. */
#include "emu/nccl/registrations.h"

#include <stdlib.h>

#include "emu/core/memory.h"
#include "emu/nccl/bootstrap.h"
#include "emu/nccl/errors.h"
#include "emu/nccl/group.h"

enum registration_kind { BUFFER, WINDOW };

struct registration {
    struct registration *next;
    enum registration_kind kind;
    void *buffer;
    size_t bytes;
};

/* A window's registration waits for all members. */
struct window_job {
    struct group_job job;
    struct ncclComm *comm; /* a reference */
    uint64_t number;
    bool ran;
};

static ncclResult_t add_registration(struct ncclComm *comm, enum registration_kind kind,
                                     void *buffer, size_t bytes, void **handle)
{
    struct registration *registration;
    struct emu_range *range = NULL;

    if (!handle || !buffer || !bytes)
        return fail(ncclInvalidArgument, "Registration of %zu bytes at %p : NULL or empty", bytes,
                    buffer);
    if (emu_memory_hold(comm->device, buffer, bytes, false, &range))
        return fail(ncclInvalidArgument,
                    "Registration of %zu bytes at %p : not memory of device %d", bytes, buffer,
                    comm->device);
    emu_memory_release(range);
    registration = calloc(1, sizeof(*registration));
    if (!registration)
        return fail(ncclSystemError, "Registration : out of memory");
    *registration = (struct registration){.kind = kind, .buffer = buffer, .bytes = bytes};
    pthread_mutex_lock(&comm->lock);
    registration->next = comm->registrations;
    comm->registrations = registration;
    pthread_mutex_unlock(&comm->lock);
    *handle = registration;
    return ncclSuccess;
}

static ncclResult_t drop_registration(struct ncclComm *comm, enum registration_kind kind,
                                      const void *handle)
{
    struct registration **link = &comm->registrations, *found;

    pthread_mutex_lock(&comm->lock);
    while (*link && (*link != handle || (*link)->kind != kind))
        link = &(*link)->next;
    found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&comm->lock);
    free(found);
    return found ? ncclSuccess
                 : fail(ncclInvalidArgument,
                        "Deregistration : %p is no handle of this communicator", handle);
}

void registrations_free(struct ncclComm *comm)
{
    while (comm->registrations) {
        struct registration *next = comm->registrations->next;

        free(comm->registrations);
        comm->registrations = next;
    }
}

static ncclResult_t get(ncclComm_t handle, struct ncclComm **comm)
{
    *comm = communicator_get(handle);
    return *comm ? ncclSuccess
                 : fail(ncclInvalidArgument,
                        "Registration : comm argument is NULL or not a communicator");
}

PUBLIC(ncclCommRegister);
ncclResult_t ncclCommRegister(const ncclComm_t handle, void *buffer, size_t bytes,
                              void **registered)
{
    struct ncclComm *comm;
    ncclResult_t result = get(handle, &comm);

    if (result)
        return result;
    result = communicator_ready(comm);
    if (!result)
        result = add_registration(comm, BUFFER, buffer, bytes, registered);
    communicator_put(comm);
    return result;
}

PUBLIC(ncclCommDeregister);
ncclResult_t ncclCommDeregister(const ncclComm_t handle, void *registered)
{
    struct ncclComm *comm;
    ncclResult_t result = get(handle, &comm);

    if (result)
        return result;
    result = drop_registration(comm, BUFFER, registered);
    communicator_put(comm);
    return result;
}

static ncclResult_t window_run(struct group_job *job)
{
    struct window_job *window = (struct window_job *)job;

    window->ran = true;
    if (!communicator_host_enter(window->comm, window->number) || !bootstrap_meet(window->comm))
        return fail(ncclInternalError, "ncclCommWindowRegister : the communicator was aborted");
    communicator_host_leave(window->comm);
    if (!job->blocking)
        atomic_store(&window->comm->state, ncclSuccess);
    return ncclSuccess;
}

static void window_free(struct group_job *job)
{
    struct window_job *window = (struct window_job *)job;

    if (!window->ran) {
        communicator_host_return(window->comm, window->number);
        if (!job->blocking)
            atomic_store(&window->comm->state, ncclSuccess);
    }
    communicator_put(window->comm);
    free(job);
}

static ncclResult_t register_window(struct ncclComm *comm, void *buffer, size_t bytes,
                                    ncclWindow_t *window, int flags)
{
    struct window_job *job;
    void *handle;
    ncclResult_t result = communicator_ready(comm);

    if (!result && (!window || flags & ~NCCL_WIN_COLL_SYMMETRIC))
        result = fail(ncclInvalidArgument,
                      "ncclCommWindowRegister : win is NULL or flags %d are invalid", flags);
    if (!result)
        result = add_registration(comm, WINDOW, buffer, bytes, &handle);
    if (result)
        return result;
    job = calloc(1, sizeof(*job));
    if (!job) {
        drop_registration(comm, WINDOW, handle);
        return fail(ncclSystemError, "ncclCommWindowRegister : out of memory");
    }
    *window = handle;
    communicator_hold(comm);
    job->comm = comm;
    job->job = (struct group_job){
        .run = window_run, .free = window_free, .blocking = communicator_blocking(comm)};
    job->number = communicator_host_number(comm);
    if (!job->job.blocking)
        atomic_store(&comm->state, ncclInProgress);
    group_add_job(&job->job);
    return ncclSuccess;
}

PUBLIC(ncclCommWindowRegister);
ncclResult_t ncclCommWindowRegister(ncclComm_t handle, void *buffer, size_t bytes,
                                    ncclWindow_t *window, int flags)
{
    struct ncclComm *comm;
    ncclResult_t result;

    group_enter();
    result = get(handle, &comm);
    if (!result) {
        result = register_window(comm, buffer, bytes, window, flags);
        communicator_put(comm);
    }
    return group_leave(result);
}

PUBLIC(ncclCommWindowDeregister);
ncclResult_t ncclCommWindowDeregister(ncclComm_t handle, ncclWindow_t window)
{
    struct ncclComm *comm;
    ncclResult_t result = get(handle, &comm);

    if (result)
        return result;
    result = drop_registration(comm, WINDOW, window);
    communicator_put(comm);
    return result;
}
