/* hash_named.c: ddpcheck_hash, which programs call to have a buffer hashed (ddpcheck.h). */
#include <string.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "interpose/record/emit.h"
#include "interpose/hash/hashing.h"

enum { NAMES = 4096, NAME_BYTES = 200 };

/* How often each member announced each name. Never emptied: programs have few names. */
static struct {
    _Atomic uint64_t key; /* hash of member and name; 0 free */
    _Atomic uint64_t calls;
} names[NAMES];

/* The number of this call for (member, name), or false if there are too many names. */
static bool number_of(const struct member *member, uint64_t name, uint64_t *number)
{
    uint64_t parts[] = {member->comm, (uint64_t)member->rank, name},
             key = string_id((const char *)parts, sizeof parts);
    for (uint64_t i = 0; i < NAMES; i++) {
        _Atomic uint64_t *place = &names[(key + i) % NAMES].key;
        uint64_t found = atomic_load_explicit(place, memory_order_relaxed);
        if (!found && atomic_compare_exchange_strong(place, &found, key))
            found = key;
        if (found == key) {
            *number =
                atomic_fetch_add_explicit(&names[(key + i) % NAMES].calls, 1, memory_order_relaxed);
            return true;
        }
    }
    return false;
}

void hash_named_forked(void)
{
    memset((void *)names, 0, sizeof names);
}

static bool announce(struct call *call, const char *text, const void *data, size_t bytes,
                     const struct member *member, cudaStream_t stream)
{
    struct record record = {.named = {.comm = member->comm,
                                      .bytes = bytes,
                                      .pointer = (uintptr_t)data,
                                      .rank = member->rank}};
    if (member->flags & RECORD_COMM_NONBLOCKING || member->rank < 0)
        return false;
    record.named.name = emit_string(call->thread, text, strnlen(text, NAME_BYTES));
    if (!number_of(member, record.named.name, &record.named.number))
        return false;
    emit_point(call, &record, 0, stream);
    struct hash_job job = {.api = API_ddpcheck_hash,
                           .comm = member->comm,
                           .number = record.named.number,
                           .serial = record.serial,
                           .rank = member->rank,
                           .device = member->device,
                           .stream = record.stream,
                           .datatype = TYPE_NONE};
    return hashing_buffer(call->thread, &job, record.named.name, (uintptr_t)data, bytes);
}

EXPORT int ddpcheck_hash(const char *name, const void *data, size_t bytes, ncclComm_t comm,
                         cudaStream_t stream);

EXPORT int ddpcheck_hash(const char *name, const void *data, size_t bytes, ncclComm_t comm,
                         cudaStream_t stream)
{
    struct call call;
    if (!name || !data || !bytes || !shim.hashing ||
        !call_begin(&call, API_ddpcheck_hash, false, false, __builtin_return_address(0),
                    __builtin_frame_address(0)))
        return 0;
    const struct member *member = comm ? comms_find(comm)
                                       : comms_largest(thread_device(call.thread));
    bool hashed = member && announce(&call, name, data, bytes, member, stream);
    call_end(&call);
    return hashed;
}
