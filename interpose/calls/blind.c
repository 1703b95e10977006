/* blind.c: calls whose effects are not recorded: a notice says what is not seen. */
#include <string.h>

#include "interpose/calls/recording.h"
#include "interpose/record/emit_call.h"
#include "interpose/shim/comms.h"
#include "interpose/ring/emit.h"

void notice_one_sided(struct recorded_call *call, ncclResult_t result)
{
    if (call->thread->saw_one_sided) /* a loop may make millions of them */
        return;
    call->thread->saw_one_sided = true;
    notice_blind(call, result, UNSEEN_ONE_SIDED,
                 "one-sided operations (ncclPutSignal, ncclSignal, ncclWaitSignal)");
}

void notice_blind(struct recorded_call *call, ncclResult_t result, enum unseen kind,
                  const char *text)
{
    struct record record = {
        .range = {.text = emit_string(call->thread, text, strlen(text)), .id = kind}};
    emit_point(call, &record, result, NULL);
}

void notice_grown(struct recorded_call *call, ncclResult_t result, const ncclComm_t *grown)
{
    /* Else calls on it would be taken for calls on the one that had its address before. */
    if (grown && (result == ncclSuccess || result == ncclInProgress))
        comms_reused(*grown);
    notice_blind(call, result, UNSEEN_GROWN,
                 "operations of communicators that ncclCommGrow creates");
}
