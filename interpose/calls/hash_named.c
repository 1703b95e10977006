/* hash_named.c: provides ddpcheck_hash, which programs call to have a buffer hashed (ddpcheck.h).
 */
#include <string.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "interpose/record/emit_call.h"
#include "interpose/ring/emit.h"
#include "interpose/calls/begin.h"
#include "interpose/hash/hash_names.h"
#include "interpose/hash/hashing.h"
#include "interpose/real/gpu.h"

enum { NAME_BYTES = 200 };

static bool hash_buffer(struct recorded_call *call, const char *text, const void *data,
                        size_t bytes, const struct local_member *member, cudaStream_t stream)
{
    struct record record = {.named = {.comm = member->comm,
                                      .bytes = bytes,
                                      .pointer = (uintptr_t)data,
                                      .rank = member->rank}};
    if (member->flags & RECORD_COMM_NONBLOCKING || member->rank < 0)
        return false;
    record.named.name = emit_string(call->thread, text, strnlen(text, NAME_BYTES));
    if (!hash_names_number(member, record.named.name, &record.named.number))
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
    struct recorded_call call;
    if (!name || !data || !bytes || !shim.hashing ||
        !call_begin(&call, API_ddpcheck_hash, false, false, __builtin_return_address(0),
                    __builtin_frame_address(0)))
        return 0;
    const struct local_member *member = comm ? comms_find(comm)
                                             : comms_largest(gpu_thread_device(call.thread));
    bool hashed = member && hash_buffer(&call, name, data, bytes, member, stream);
    call_end(&call);
    return hashed;
}
