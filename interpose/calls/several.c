/* several.c: records calls that are several operations in one launch, as a group of them:
 * ncclWaitSignal, which waits for several signals, and RCCL's ncclAllToAllv, which sends to and
 * receives from each rank. Puts and signals are recorded as sends are (operations.c). */
#include "interpose/calls/communicators.h"
#include "interpose/calls/recording.h"
#include "interpose/record/emit_call.h"
#include "lib/trace/kinds.h"

static void several_begin(const struct recorded_call *call)
{
    struct recorded_call group = *call;
    group.api = API_ncclGroupStart;
    group_started(&group, ncclSuccess);
}

static void several_add(const struct recorded_call *call, uint16_t api, ncclComm_t comm,
                        cudaStream_t stream, const struct operation_arguments *operation)
{
    struct recorded_call part = *call;
    part.api = api;
    operation_enter(&part, comm, stream, operation);
    operation_leave(&part, ncclSuccess);
}

static void several_end(struct recorded_call *call)
{
    call->api = API_ncclGroupEnd;
    group_end_enter(call);
}

void several_leave(struct recorded_call *call, ncclResult_t result)
{
    if (call->api == API_ncclGroupEnd)
        group_end_leave(call, result);
    else
        operation_leave(call, result);
}

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

void wait_signal_enter(struct recorded_call *call, ncclComm_t comm, cudaStream_t stream, int count,
                       const ncclWaitSignalDesc_t *signals)
{
    struct operation_arguments wait;
    if (count <= 0 || !signals)
        return; /* NCCL refuses it */
    if (count == 1) {
        wait = wait_for(&signals[0]);
        operation_enter(call, comm, stream, &wait);
        return;
    }
    several_begin(call);
    for (int i = 0; i < count; i++) {
        wait = wait_for(&signals[i]);
        several_add(call, API_ncclWaitSignal, comm, stream, &wait);
    }
    several_end(call);
}

void all_to_all_v_enter(struct recorded_call *call, ncclComm_t comm, cudaStream_t stream,
                        const struct all_to_all_v *what)
{
    const struct local_member *member = comms_find(comm);
    size_t element = datatype_bytes((unsigned)what->type);
    several_begin(call);
    for (int peer = 0; member && peer < member->nranks; peer++) {
        const struct operation_arguments send = {.send = (const char *)what->send +
                                                         what->send_offset[peer] * element,
                                                 .count = what->send_count[peer],
                                                 .type = what->type,
                                                 .root = peer,
                                                 .way = WAY_SEND},
                                         receive = {.recv = (const char *)what->recv +
                                                            what->recv_offset[peer] * element,
                                                    .count = what->recv_count[peer],
                                                    .type = what->type,
                                                    .root = peer,
                                                    .way = WAY_RECV};
        if (send.count)
            several_add(call, API_ncclSend, comm, stream, &send);
        if (receive.count)
            several_add(call, API_ncclRecv, comm, stream, &receive);
    }
    several_end(call);
}
