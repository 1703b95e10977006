/* refuse.c: refuses a collective that differs from what another rank called in its place, and
 * answers ncclGetLastError for it (--guard). */
#include "interpose/calls/refuse.h"

#include "interpose/real/callers.h"
#include "interpose/real/resolve.h"
#include "interpose/ring/guard.h"
#include "interpose/shim/shim.h"

static int32_t world_rank_of(const struct local_member *member)
{
    return shim.process.rank >= 0 ? shim.process.rank : member->rank;
}

/* What the group has of other calls must not be launched either: NCCL gives a group up that has an
 * invalid call, and checks the datatype of each call at once (nccl's argcheck.cc, ArgsCheck). */
static void fail_group(struct local_member *member, cudaStream_t stream)
{
    __typeof__(&ncclAllReduce) all_reduce = REAL_CALL(ncclAllReduce);
    if (all_reduce)
        all_reduce(NULL, NULL, 1, ncclNumTypes, ncclSum, atomic_load(&member->handle), stream);
}

static bool differs_from_peers(const struct shim_thread *thread, const struct record *record,
                               const struct local_member *member, uint16_t api)
{
    struct guarded_call guarded = {
        .comm = record->op.comm, .number = record->op.number, .rank = world_rank_of(member)};
    struct record named = *record;
    named.api = api;
    signature_of(&named, &guarded.signature);
    return (thread->group_depth && thread->group_refused) || guard_refuses(&guarded);
}

void refuse_if_different(struct recorded_call *call, struct record *record,
                         struct local_member *member, cudaStream_t stream)
{
    struct shim_thread *thread = call->thread;
    thread->was_refused = false;
    if (record->flags & RECORD_FLAG_CAPTURE || !record->op.count)
        return;
    if (!differs_from_peers(thread, record, member, call->api))
        return;
    uint64_t next = record->op.number + 1;
    atomic_compare_exchange_strong(&member->number, &next, record->op.number);
    thread->was_refused = call->is_refused = true;
    call->slot = RECORD_NO_SLOT;
    record->flags |= RECORD_FLAG_REFUSED;
    if (thread->group_depth && !thread->group_refused && thread->group_calls > 1)
        fail_group(member, stream);
    thread->group_refused = thread->group_depth > 0;
}

EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
    bool other = false;
    const char *(*real)(ncclComm_t) = (const char *(*)(ncclComm_t))callers_resolve(
        CALL_ncclGetLastError, __builtin_return_address(0), &other);
    const char *said = other ? NULL : guard_said(&thread_self);
    return said || !real ? said : real(comm);
}
