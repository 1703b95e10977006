/* registrations.c: registers and deregisters buffers and windows, and allocates memory. Windows are
 * numbered in the order of their registration: it is collective, so this is one on all members. */
#include "emu/nccl/registrations.h"

#include <nccl.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "abi/nccl_later.h"
#include "emu/core.h"
#include "emu/core/device.h"
#include "emu/core/memory.h"
#include "emu/core/stream.h"
#include "emu/nccl/bootstrap.h"
#include "emu/nccl/errors.h"
#include "emu/nccl/group.h"

enum registration_kind { BUFFER, WINDOW };

struct registration {
    struct registration *next;
    enum registration_kind kind;
    void *buffer;
    size_t bytes;
    uint64_t number; /* of a window */
};

/* A window's registration waits for all members. */
struct window_job {
    struct group_job job;
    struct ncclComm *comm; /* a reference */
    uint64_t number, window;
    struct window_place place;
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
    if (kind == WINDOW)
        registration->number = comm->windows++;
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

static bool registration_covers(const struct registration *registration, const void *buffer,
                                size_t bytes)
{
    uintptr_t offset = (uintptr_t)buffer - (uintptr_t)registration->buffer;

    return registration->kind == WINDOW && offset <= registration->bytes &&
           bytes <= registration->bytes - offset;
}

/* With comm->lock held; NULL: no window of the communicator. */
static const struct registration *find_window(const struct ncclComm *comm, const void *handle)
{
    const struct registration *at = comm->registrations;

    while (at && (at != handle || at->kind != WINDOW))
        at = at->next;
    return at;
}

bool registrations_window(struct ncclComm *comm, const void *handle, uint64_t *number)
{
    const struct registration *found;

    pthread_mutex_lock(&comm->lock);
    found = find_window(comm, handle);
    if (found)
        *number = found->number;
    pthread_mutex_unlock(&comm->lock);
    return found;
}

bool registrations_cover(struct ncclComm *comm, const void *buffer, size_t bytes)
{
    const struct registration *at;

    pthread_mutex_lock(&comm->lock);
    for (at = comm->registrations; at && !registration_covers(at, buffer, bytes); at = at->next)
        continue;
    pthread_mutex_unlock(&comm->lock);
    return at;
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

    struct ncclComm *comm = window->comm;
    bool met;

    window->ran = true;
    met = communicator_host_enter(comm, window->number);
    if (met) {
        comm->segment.members[comm->rank].windows[window->window % WINDOWS] = window->place;
        met = bootstrap_meet(comm);
    }
    if (!met)
        return fail(ncclInternalError, "ncclCommWindowRegister : the communicator was aborted");
    communicator_host_leave(comm);
    if (!job->blocking)
        atomic_store(&comm->state, ncclSuccess);
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

    if (!result && (!window || flags & ~NCCL_WIN_ALL_FLAGS))
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
    job->place = (struct window_place){(uintptr_t)buffer, bytes};
    registrations_window(comm, handle, &job->window);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* so that members may write into it */
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

PUBLIC(ncclWinGetUserPtr);
ncclResult_t ncclWinGetUserPtr(ncclComm_t handle, ncclWindow_t window, void **pointer)
{
    struct ncclComm *comm;
    const struct registration *found;
    ncclResult_t result = get(handle, &comm);

    if (result)
        return result;
    pthread_mutex_lock(&comm->lock);
    found = find_window(comm, window);
    if (found && pointer)
        *pointer = found->buffer;
    pthread_mutex_unlock(&comm->lock);
    communicator_put(comm);
    return found && pointer
               ? ncclSuccess
               : fail(ncclInvalidArgument, "ncclWinGetUserPtr : no window, or no outUserPtr");
}

PUBLIC(ncclMemAlloc);
ncclResult_t ncclMemAlloc(void **pointer, size_t bytes)
{
    int error;

    if (!pointer)
        return fail(ncclInvalidArgument, "ncclMemAlloc : the argument for the pointer is NULL");
    *pointer = NULL; /* what 0 bytes give */
    if (!bytes)
        return ncclSuccess;
    error = emu_memory_allocate(emu_device_current(), bytes, NULL, pointer);
    return error ? fail(ncclUnhandledCudaError, "Cuda failure %d : can't allocate %zu bytes", error,
                        bytes)
                 : ncclSuccess;
}

/* Waits for the device first, as cudaFree. */
PUBLIC(ncclMemFree);
ncclResult_t ncclMemFree(void *pointer)
{
    struct emu_range range;
    int error;

    if (!pointer)
        return ncclSuccess;
    if (!emu_memory_look_up(pointer, &range, NULL))
        return fail(ncclInvalidArgument, "ncclMemFree : %p is not device memory", pointer);
    error = emu_stream_synchronize_device(emu_device_get(range.device));
    if (!error)
        error = emu_memory_free(pointer, 1u << EMU_MEMORY_DEVICE);
    return error ? fail(ncclUnhandledCudaError, "Cuda failure %d : can't free %p", error, pointer)
                 : ncclSuccess;
}
