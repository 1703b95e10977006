/* blind.c: calls whose effects are not recorded: a notice says what is not seen. */
#include <string.h>

#include "interpose/calls/recording.h"
#include "interpose/record/emit_call.h"
#include "interpose/shim/comms.h"
#include "interpose/ring/emit.h"

void device_comm_leave(struct recorded_call *call, ncclResult_t result)
{
    static const char text[] = "NCCL operations that kernels start themselves (ncclDevCommCreate)";
    struct recorded_call notice = *call;
    emit_leave(call, result, 0);
    if (result != ncclSuccess)
        return;
    notice.api = API_notice_blind;
    notice_blind(&notice, result, UNSEEN_DEVICE_NCCL, text);
}

void notice_blind(struct recorded_call *call, ncclResult_t result, enum unseen kind,
                  const char *text)
{
    struct record record = {
        .range = {.text = emit_string(call->thread, text, strlen(text)), .id = kind}};
    emit_point(call, &record, result, NULL);
}

void notice_grown(struct shim_thread *thread, ncclResult_t result, const ncclComm_t *grown)
{
    static const char text[] = "operations of communicators that ncclCommGrow creates";
    struct record record = {
        .range = {.text = emit_string(thread, text, strlen(text)), .id = UNSEEN_GROWN}};
    /* Else calls on it would be taken for calls on the one that had its address before. */
    if (grown && (result == ncclSuccess || result == ncclInProgress))
        comms_reused(*grown);
    emit_notice(thread, &record, API_notice_blind);
}
