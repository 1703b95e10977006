/* hashing.c: decides which buffers of an operation are hashed, and when. */
#include "interpose/hash/hashing.h"

#include <stdlib.h>
#include <string.h>

#include "interpose/ring/emit.h"
#include "interpose/real/gpu.h"
#include "interpose/hash/hashing_kernel.h"
#include "lib/trace/kinds.h"
#include "interpose/shim/environment.h"
#include "lib/trace/unseen.h"

/* Why something is not hashed; each is emitted once. */
enum reason { REASON_CAPTURE, REASON_NONBLOCKING, REASON_MEMORY, REASON_GROUP, REASONS };
static const char *const reason_text[REASONS] = {
    [REASON_CAPTURE] = "payloads of operations that are captured into a graph (--hash)",
    [REASON_NONBLOCKING] = "payloads of operations on communicators that do not block (--hash)",
    [REASON_MEMORY] = "payloads in memory that is not the communicator's device's, or longer than "
                      "their allocation (--hash)",
    [REASON_GROUP] = "payloads of more operations in one ncclGroup than --hash has room for",
};
static _Atomic uint32_t reasons_emitted; /* a bit each */

static void emit_reason(struct shim_thread *thread, enum reason reason)
{
    if (atomic_fetch_or_explicit(&reasons_emitted, 1u << reason, memory_order_relaxed) &
        1u << reason)
        return;
    const char *text = reason_text[reason];
    struct record record = {
        .range = {.text = emit_string(thread, text, strlen(text)), .id = UNSEEN_PAYLOADS}};
    emit_notice(thread, &record, API_notice_blind);
}

void hashing_forked(void)
{
    atomic_store(&reasons_emitted, 0);
}

bool hashing_start(void)
{
    const char *setting = environment_get("DDPCHECK_HASH");
    shim.hashing = setting && !strcmp(setting, "1");
    return true;
}

/* Bytes of a buffer; 0 if it is not used or they can't be. */
static uint64_t buffer_bytes(uint8_t share, uint64_t count, size_t size, bool is_root,
                             int32_t nranks)
{
    uint64_t each, bytes;
    if (__builtin_mul_overflow(count, size, &each))
        return 0;
    bytes = kind_share_bytes((enum kind_share)share, each, is_root, nranks);
    return bytes >> 48 ? 0 : bytes;
}

static bool is_device_memory(const struct hash_job *job, uint64_t pointer, uint64_t bytes)
{
    struct gpu_memory first, last;
    gpu_memory_find(pointer, &first);
    if (first.type != MEMORY_MANAGED &&
        ((first.type != MEMORY_DEVICE && first.type != MEMORY_DEVICE_MAPPED) ||
         first.device != job->device))
        return false;
    if (pointer >= first.base && bytes <= first.bytes - (pointer - first.base))
        return true;
    if (first.type != MEMORY_DEVICE_MAPPED)
        return false;
    gpu_memory_find(pointer + bytes - 1, &last); /* several mappings side by side are one buffer */
    return last.type == first.type && last.device == first.device;
}

static bool ranges_meet(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a_bytes && b_bytes && a < b + b_bytes && b < a + a_bytes;
}

/* Leaves out what the kernel must not touch. `recv_bytes` stays: what the operation writes there is
 * no fault. */
static void remove_unhashable(struct shim_thread *thread, struct hash_job *job)
{
    bool send = job->send_bytes && is_device_memory(job, job->send, job->send_bytes);
    bool recv = job->recv_after && job->recv_bytes &&
                is_device_memory(job, job->recv, job->recv_bytes);
    if ((job->send_bytes && !send) || (job->recv_after && job->recv_bytes && !recv))
        emit_reason(thread, REASON_MEMORY);
    job->send_bytes = send ? job->send_bytes : 0;
    job->recv_after = recv;
}

static bool is_unhashable(struct shim_thread *thread, const struct local_member *member,
                          const struct record *enter)
{
    if (enter->flags & RECORD_FLAG_CAPTURE) {
        emit_reason(thread, REASON_CAPTURE);
        return true;
    }
    if (member->flags & RECORD_COMM_NONBLOCKING) {
        emit_reason(thread, REASON_NONBLOCKING);
        return true;
    }
    if (thread->caches->hash_jobs == HASH_JOBS) {
        emit_reason(thread, REASON_GROUP);
        return true;
    }
    return false;
}

void hashing_operation(struct shim_thread *thread, const struct local_member *member,
                       const struct record *enter)
{
    const struct kind *kind = kind_find(enter->api);
    if (!kind || !enter->op.count || is_unhashable(thread, member, enter))
        return;
    bool is_root = enter->op.root == member->rank;
    size_t size = datatype_bytes(enter->op.datatype);
    struct hash_job *job = &thread->caches->hash_job[thread->caches->hash_jobs];
    *job = (struct hash_job){
        .api = enter->api,
        .comm = member->comm,
        .number = enter->op.number,
        .serial = enter->serial,
        .rank = member->rank,
        .device = member->device,
        .stream = enter->stream,
        .datatype = enter->op.datatype,
        .recv_after = kind->flags & KIND_ALIKE,
        .send = enter->op.sendbuff,
        .recv = enter->op.recvbuff,
    };
    job->send_bytes = buffer_bytes(kind->send, enter->op.count, size, is_root, member->nranks);
    job->recv_bytes = buffer_bytes(kind->recv, enter->op.count, size, is_root, member->nranks);
    remove_unhashable(thread, job);
    if (!job->send_bytes && !job->recv_after && !job->recv_bytes)
        return;
    job->send_after = job->send_bytes &&
                      !ranges_meet(job->send, job->send_bytes, job->recv, job->recv_bytes);
    thread->caches->hash_jobs++;
}

/* What another operation of the group may write is no send buffer that has to stay as it is. */
static void clear_overwritten(struct thread_caches *caches)
{
    for (uint32_t i = 0; i < caches->hash_jobs; i++)
        for (uint32_t k = 0; k < caches->hash_jobs && caches->hash_job[i].send_after; k++)
            if (ranges_meet(caches->hash_job[i].send, caches->hash_job[i].send_bytes,
                            caches->hash_job[k].recv, caches->hash_job[k].recv_bytes))
                caches->hash_job[i].send_after = false;
}

void hashing_before(struct shim_thread *thread)
{
    struct thread_caches *caches = thread->caches;
    if (caches->hash_jobs > 1)
        clear_overwritten(caches);
    for (uint32_t i = 0; i < caches->hash_jobs; i++) {
        const struct hash_job *job = &caches->hash_job[i];
        if (job->send_bytes)
            hashing_kernel_run(thread, job, HASH_SEND_BEFORE, 0, job->send, job->send_bytes);
    }
}

void hashing_after(struct shim_thread *thread, bool launched)
{
    struct thread_caches *caches = thread->caches;
    for (uint32_t i = 0; launched && i < caches->hash_jobs; i++) {
        const struct hash_job *job = &caches->hash_job[i];
        if (job->recv_after)
            hashing_kernel_run(thread, job, HASH_RECV_AFTER, 0, job->recv, job->recv_bytes);
        if (job->send_after)
            hashing_kernel_run(thread, job, HASH_SEND_AFTER, 0, job->send, job->send_bytes);
    }
    caches->hash_jobs = 0;
}

bool hashing_buffer(struct shim_thread *thread, const struct hash_job *job, uint64_t name,
                    uint64_t pointer, uint64_t bytes)
{
    if (gpu_is_capturing((cudaStream_t)(uintptr_t)job->stream)) {
        emit_reason(thread, REASON_CAPTURE);
        return false;
    }
    if (!is_device_memory(job, pointer, bytes)) {
        emit_reason(thread, REASON_MEMORY);
        return false;
    }
    return hashing_kernel_run(thread, job, HASH_NAMED, name, pointer, bytes);
}
