/* progress.c: gives out progress slots and lets the GPU write to them. */
#include "interpose/progress/progress.h"

#include <string.h>
#include <time.h>

#include <cuda.h>

#include "interpose/real/gpu.h"
#include "interpose/progress/progress_events.h"
#include "interpose/real/resolve.h"
#include "interpose/ring/emit.h"
#include "interpose/ring/files.h"
#include "interpose/shim/environment.h"
#include "interpose/shim/forget.h"

enum { PREPARE_WAIT_MS = 2000 };

enum mode { MODE_UNKNOWN, MODE_PREPARING, MODE_WRITES, MODE_EVENTS, MODE_HOST, MODE_NONE };

enum late_word { LATE_STARTED, LATE_DONE };

struct progress_state {
    struct local_member *member;
    uint64_t comm; /* the member's, when the slot was made */
    uint64_t stream;
    int device;
    _Atomic uint64_t launches;   /* begun so far */
    _Atomic uint32_t unfinished; /* the last launch's done is still to be enqueued */
    _Atomic uint32_t released;   /* the member ended: another may take the slot */
    _Atomic uint64_t late[2];    /* of enum late_word: values that no event could be had for yet */
};

static struct progress {
    _Atomic uint32_t mode; /* enum mode */
    CUdeviceptr page;      /* the slots as the GPU sees them */
    struct progress_state slot[RING_SLOTS_MAX];
    _Atomic uint32_t slots;    /* in use, as in the ring file */
    _Atomic uint32_t making;   /* lock of a member's list of streams */
    _Atomic uint32_t reported; /* a bit for each reason */
    _Atomic uint32_t late;     /* a slot has late values */
} progress;

void progress_forked(void)
{
    forget_state(&progress, sizeof progress);
}

/* Why progress is late or missing; each is emitted once. */
enum reason {
    REASON_EVENTS,
    REASON_DISK,
    REASON_REQUESTED,
    REASON_NONE,
    REASON_SLOTS,
    REASON_STREAMS,
    REASON_WRITE,
    REASON_FAULT
};
static const char *const reason_text[] = {
    [REASON_EVENTS] = "how far the GPU got while the program makes no calls: the driver takes no "
                      "stream writes to the ring file, so events are queried in later calls",
    [REASON_DISK] = "how far the GPU got while the program makes no calls: the ring file is on a "
                    "disk and the driver can't pin it, so events are queried in later calls (free "
                    "32 MB in /dev/shm, or set TMPDIR to a tmpfs)",
    [REASON_REQUESTED] = "how far the GPU got while the program makes no calls: "
                         "DDPCHECK_PROGRESS=events asks for events, which later calls query",
    [REASON_NONE] = "progress of operations: the driver has neither stream writes nor events",
    [REASON_SLOTS] = "progress of operations on further communicators and streams: all progress "
                     "slots of the process are in use",
    [REASON_STREAMS] = "progress of operations on further streams of a communicator",
    [REASON_WRITE] = "progress of operations: the driver refused to enqueue a write (after "
                     "cudaDeviceReset the registered memory is gone)",
    [REASON_FAULT] = "progress of operations: the GPU failed, and takes no more work of this "
                     "process (see its first CUDA error)",
};

/* Errors after which every call of the process on the device fails. */
static bool is_gpu_fault(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
        return true;
    default:
        return false;
    }
}

static enum reason reason_of(CUresult result)
{
    if (result == CUDA_ERROR_NOT_SUPPORTED)
        return REASON_EVENTS;
    return is_gpu_fault(result) ? REASON_FAULT : REASON_WRITE;
}

static void report_progress_lost(struct shim_thread *thread, enum reason reason)
{
    const char *text = reason_text[reason];
    if (atomic_fetch_or_explicit(&progress.reported, 1u << reason, memory_order_relaxed) &
        1u << reason)
        return;
    struct record record = {.range = {.text = emit_string(thread, text, strlen(text))}};
    emit_notice(thread, &record, API_notice_blind);
}

/* DDPCHECK_PROGRESS=events: as with a driver that has no stream writes. */
static bool are_events_requested(void)
{
    const char *setting = environment_get("DDPCHECK_PROGRESS");
    return setting && !strcmp(setting, "events");
}

static enum reason events_reason(void)
{
    if (are_events_requested())
        return REASON_REQUESTED;
    return files_are_in_memory() ? REASON_EVENTS : REASON_DISK;
}

static enum mode register_slots(void)
{
    if (are_events_requested() && REAL_HELPER(cuEventRecord))
        return MODE_EVENTS;
    __typeof__(&cuMemHostRegister) host_register = REAL_HELPER(cuMemHostRegister);
    __typeof__(&cuMemHostGetDevicePointer) device_pointer = REAL_HELPER(cuMemHostGetDevicePointer);
    if (!REAL_HELPER(cuStreamWriteValue64) || !host_register || !device_pointer)
        return REAL_HELPER(cuEventRecord) ? MODE_EVENTS : MODE_NONE;
    CUresult result = host_register(shim.file->slot, sizeof shim.file->slot,
                                    CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    /* Of several devices, another one was reset than the one that registered. */
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
        return MODE_EVENTS;
    if (device_pointer(&progress.page, shim.file->slot, 0) != CUDA_SUCCESS)
        return MODE_EVENTS;
    return MODE_WRITES;
}

/* A thread whose communicator was created at the same time as another's waits until the slots are
 * registered, or its first operations would get none. That takes milliseconds. */
static void wait_for_slots(uint32_t mode)
{
    for (int tries = 0; tries < PREPARE_WAIT_MS && mode == MODE_PREPARING; tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        mode = atomic_load_explicit(&progress.mode, memory_order_acquire);
    }
}

void progress_prepare(int device, struct shim_thread *thread)
{
    uint32_t mode = MODE_UNKNOWN;
    /* Registering memory would break a capture that is under way; the next communicator tries
     * again. */
    if (atomic_load(&shim.captures) > 0)
        return;
    if (!atomic_compare_exchange_strong(&progress.mode, &mode, MODE_PREPARING)) {
        wait_for_slots(mode);
        return;
    }
    bool switched = gpu_switch_device(thread, device);
    int captures = gpu_relax_captures();
    enum mode found = register_slots();
    gpu_restore_captures(captures);
    gpu_restore_device(thread, switched);
    atomic_store_explicit(&progress.mode, found, memory_order_release);
    if (found == MODE_NONE)
        report_progress_lost(thread, REASON_NONE);
    else if (found == MODE_EVENTS)
        report_progress_lost(thread, events_reason());
}

void progress_prepare_host(void)
{
    uint32_t mode = MODE_UNKNOWN;
    atomic_compare_exchange_strong(&progress.mode, &mode, MODE_HOST);
}

static uint32_t find_member_slot(struct local_member *member, uint64_t stream)
{
    for (int i = 0; i < MEMBER_STREAMS; i++) {
        struct member_stream *entry = &member->stream[i];
        if (!atomic_load_explicit(&entry->ready, memory_order_acquire))
            break;
        if (entry->stream == stream)
            return entry->slot;
    }
    return RECORD_NO_SLOT;
}

/* A slot of a member that ended, once the GPU has written all that was enqueued for it: a late
 * write would take the word back. Launches are counted on from there. */
static uint32_t find_released_slot(void)
{
    for (uint32_t i = 0; i < RING_SLOTS_MAX; i++) {
        struct progress_state *state = &progress.slot[i];
        uint64_t launches = atomic_load(&state->launches);
        if (atomic_load(&state->released) && !atomic_load(&state->unfinished) &&
            atomic_load(&shim.file->slot[i].started) == launches &&
            atomic_load(&shim.file->slot[i].done) == launches)
            return i;
    }
    return RECORD_NO_SLOT;
}

/* Slots that no member had before come first: old ones stay apart as long as there are others. */
static uint32_t choose_slot(void)
{
    uint32_t slots = atomic_load(&progress.slots);
    return slots < RING_SLOTS_MAX ? slots : find_released_slot();
}

static uint32_t create_slot(struct shim_thread *thread, struct local_member *member,
                            uint64_t stream)
{
    struct member_stream *entry = member->stream;
    while (entry < member->stream + MEMBER_STREAMS && atomic_load(&entry->ready))
        entry++;
    bool has_entry = entry < member->stream + MEMBER_STREAMS;
    uint32_t slot = has_entry ? choose_slot() : RECORD_NO_SLOT;
    if (slot == RECORD_NO_SLOT) {
        report_progress_lost(thread, has_entry ? REASON_SLOTS : REASON_STREAMS);
        return RECORD_NO_SLOT;
    }
    struct progress_state *state = &progress.slot[slot];
    state->member = member;
    state->comm = member->comm;
    state->stream = stream;
    state->device = member->device;
    atomic_store(&state->released, 0);
    struct progress_slot *shared = &shim.file->slot[slot];
    shared->comm = member->comm;
    shared->stream = stream;
    shared->rank = member->rank;
    if (slot == atomic_load(&progress.slots)) {
        atomic_store_explicit(&progress.slots, slot + 1, memory_order_release);
        atomic_store_explicit(&shim.file->slots, slot + 1, memory_order_release);
    }
    entry->stream = stream;
    entry->slot = slot;
    atomic_store_explicit(&entry->ready, 1, memory_order_release);
    return slot;
}

void progress_release(struct local_member *member)
{
    for (int i = 0; i < MEMBER_STREAMS; i++) {
        struct member_stream *entry = &member->stream[i];
        if (!atomic_load_explicit(&entry->ready, memory_order_acquire))
            return;
        atomic_store(&progress.slot[entry->slot].released, 1);
    }
}

void progress_device_reset(void)
{
    uint32_t mode = MODE_WRITES;
    atomic_compare_exchange_strong(&progress.mode, &mode, MODE_UNKNOWN);
}

uint32_t progress_slot(struct local_member *member, cudaStream_t stream)
{
    uint32_t mode = atomic_load_explicit(&progress.mode, memory_order_acquire);
    if (mode != MODE_WRITES && mode != MODE_EVENTS && mode != MODE_HOST)
        return RECORD_NO_SLOT;
    uint32_t slot = find_member_slot(member, (uintptr_t)stream);
    if (slot != RECORD_NO_SLOT ||
        atomic_exchange_explicit(&progress.making, 1, memory_order_acquire))
        return slot; /* two members' first launches at one moment: one of them goes without */
    slot = find_member_slot(member, (uintptr_t)stream);
    if (slot == RECORD_NO_SLOT)
        slot = create_slot(&thread_self, member, (uintptr_t)stream);
    atomic_store_explicit(&progress.making, 0, memory_order_release);
    return slot;
}

int progress_slot_device(uint32_t slot)
{
    return progress.slot[slot].device;
}

uint64_t progress_next_launch(uint32_t slot)
{
    return slot == RECORD_NO_SLOT
               ? 0
               : atomic_load_explicit(&progress.slot[slot].launches, memory_order_relaxed) + 1;
}

uint64_t progress_take_launch(uint32_t slot)
{
    return slot == RECORD_NO_SLOT
               ? 0
               : atomic_fetch_add_explicit(&progress.slot[slot].launches, 1, memory_order_relaxed) +
                     1;
}

/* A later call of the program enqueues it, unless a newer value of the word came first. */
static void keep_late(uint32_t slot, const _Atomic uint64_t *word, uint64_t value)
{
    enum late_word which = word == &shim.file->slot[slot].done ? LATE_DONE : LATE_STARTED;
    atomic_store(&progress.slot[slot].late[which], value);
    atomic_store(&progress.late, 1);
}

/* Enqueues *word = value on the slot's stream. `nccl_took_it`: a stream that was destroyed is
 * refused by NCCL as well, and reported as such. */
static void enqueue_write(struct shim_thread *thread, uint32_t slot, _Atomic uint64_t *word,
                          uint64_t value, bool nccl_took_it)
{
    struct progress_state *state = &progress.slot[slot];
    CUstream stream = (CUstream)(uintptr_t)state->stream;
    bool switched = gpu_switch_device(thread, state->device);
    if (atomic_load_explicit(&progress.mode, memory_order_relaxed) == MODE_WRITES) {
        CUdeviceptr address = progress.page + (CUdeviceptr)((char *)word - (char *)shim.file->slot);
        CUresult result = REAL_HELPER(cuStreamWriteValue64)(stream, address, value,
                                                            CU_STREAM_WRITE_VALUE_DEFAULT);
        if (result == CUDA_ERROR_NOT_SUPPORTED)
            atomic_store(&progress.mode, MODE_EVENTS);
        if (result != CUDA_SUCCESS && (nccl_took_it || result != CUDA_ERROR_INVALID_HANDLE))
            report_progress_lost(thread, reason_of(result));
    }
    if (atomic_load_explicit(&progress.mode, memory_order_relaxed) == MODE_EVENTS &&
        !progress_events_record(stream, state->device, word, value))
        keep_late(slot, word, value);
    gpu_restore_device(thread, switched);
}

void progress_begin(struct shim_thread *thread, uint32_t slot)
{
    struct progress_state *state = &progress.slot[slot];
    if (atomic_exchange(&state->unfinished, 0))
        enqueue_write(thread, slot, &shim.file->slot[slot].done, atomic_load(&state->launches),
                      true);
    uint64_t launch = atomic_fetch_add(&state->launches, 1) + 1;
    enqueue_write(thread, slot, &shim.file->slot[slot].started, launch, false);
}

void progress_end(struct shim_thread *thread, uint32_t slot, ncclResult_t result)
{
    struct progress_state *state = &progress.slot[slot];
    if (result == ncclInProgress ||
        (result == ncclSuccess && (state->member->flags & RECORD_COMM_NONBLOCKING)))
        atomic_store(&state->unfinished, 1);
    else
        enqueue_write(thread, slot, &shim.file->slot[slot].done, atomic_load(&state->launches),
                      result == ncclSuccess);
    if (result == ncclInProgress)
        atomic_store(&state->member->async, ncclInProgress);
}

void progress_flush(struct shim_thread *thread, struct local_member *member)
{
    for (int i = 0; i < MEMBER_STREAMS; i++) {
        struct member_stream *entry = &member->stream[i];
        if (!atomic_load_explicit(&entry->ready, memory_order_acquire))
            return;
        struct progress_state *state = &progress.slot[entry->slot];
        if (atomic_exchange(&state->unfinished, 0))
            enqueue_write(thread, entry->slot, &shim.file->slot[entry->slot].done,
                          atomic_load(&state->launches), true);
    }
}

static void enqueue_late(uint32_t slot, enum late_word which)
{
    struct progress_slot *shared = &shim.file->slot[slot];
    _Atomic uint64_t *word = which == LATE_DONE ? &shared->done : &shared->started;
    uint64_t value = atomic_exchange(&progress.slot[slot].late[which], 0);
    if (value)
        enqueue_write(&thread_self, slot, word, value, true);
}

static void enqueue_all_late(void)
{
    uint32_t slots = atomic_load_explicit(&progress.slots, memory_order_acquire);
    if (atomic_load(&shim.captures) > 0 || thread_self.in_callback ||
        !atomic_exchange(&progress.late, 0))
        return;
    for (uint32_t i = 0; i < slots; i++) {
        enqueue_late(i, LATE_STARTED);
        enqueue_late(i, LATE_DONE);
    }
}

void progress_forget_stream(cudaStream_t stream)
{
    uint32_t slots = atomic_load_explicit(&progress.slots, memory_order_acquire);
    for (uint32_t i = 0; i < slots; i++)
        if (progress.slot[i].stream == (uintptr_t)stream) {
            atomic_store(&progress.slot[i].unfinished, 0);
            atomic_store(&progress.slot[i].late[LATE_STARTED], 0);
            atomic_store(&progress.slot[i].late[LATE_DONE], 0);
        }
}

void progress_poll(void)
{
    if (atomic_load_explicit(&progress.mode, memory_order_relaxed) != MODE_EVENTS)
        return;
    progress_events_poll();
    if (atomic_load_explicit(&progress.late, memory_order_relaxed)) {
        enqueue_all_late();
        progress_events_poll(); /* this may be the program's last call */
    }
}
