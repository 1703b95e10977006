/* one_sided.c: records ncclWaitSignal, which waits for several signals in one call: each has a
 * record of its own. Outside a group they stand between the records of one, because they are one
 * launch. Puts and signals are recorded as sends are (operations.c). */
#include "interpose/calls/recording.h"
#include "interpose/record/emit_call.h"

static struct operation_arguments wait_for(const ncclWaitSignalDesc_t *signal)
{
    return (struct operation_arguments){
        .count = signal->opCnt > 0 ? (size_t)signal->opCnt : 0,
        .type = TYPE_NONE,
        .root = signal->peer,
        .way = WAY_WAIT,
        .signal = SIGNAL_OF(signal->sigIdx, signal->ctx),
    };
}

/* All but the last, within a group. */
static void wait_signal_first(const struct recorded_call *call, ncclComm_t comm,
                              cudaStream_t stream, int count, const ncclWaitSignalDesc_t *signals)
{
    for (int i = 0; i < count - 1; i++) {
        struct recorded_call part = *call;
        const struct operation_arguments wait = wait_for(&signals[i]);
        operation_enter(&part, comm, stream, &wait);
        operation_leave(&part, ncclSuccess);
    }
}

void wait_signal_enter(struct recorded_call *call, ncclComm_t comm, cudaStream_t stream, int count,
                       const ncclWaitSignalDesc_t *signals)
{
    struct recorded_call group = *call;
    if (count <= 0 || !signals)
        return; /* NCCL refuses it */
    const struct operation_arguments last = wait_for(&signals[count - 1]);
    if (count == 1 || call->thread->group_depth) {
        wait_signal_first(call, comm, stream, count, signals);
        operation_enter(call, comm, stream, &last);
        return;
    }
    group.api = API_ncclGroupStart;
    group_started(&group, ncclSuccess);
    wait_signal_first(call, comm, stream, count, signals);
    struct recorded_call part = *call;
    operation_enter(&part, comm, stream, &last);
    operation_leave(&part, ncclSuccess);
    group.api = API_ncclGroupEnd;
    group_end_enter(&group);
    call->api = API_ncclGroupEnd;
    call->enter = group.enter;
}

void wait_signal_leave(struct recorded_call *call, ncclResult_t result)
{
    if (call->api == API_ncclGroupEnd)
        group_end_leave(call, result);
    else
        operation_leave(call, result);
}
