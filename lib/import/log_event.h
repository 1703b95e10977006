/* log_event.h: what a message of NCCL's log says (log_line.h): a collective, a communicator that is
 * made or ended, a group.
 *
 * Pure: text in, plain values out. The texts are those of NCCL 2.3 to 2.30 (src/enqueue.cc,
 * init.cc, group.cc): the fields of the INFO lines are found by their names, so that ones that came
 * later do no harm. */
#ifndef DDPCHECK_IMPORT_LOG_EVENT_H
#define DDPCHECK_IMPORT_LOG_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_event_kind {
    LOG_EVENT_NONE,      /* nothing that matters here */
    LOG_EVENT_CUT,       /* a collective or a communicator, but its end is missing */
    LOG_EVENT_OPERATION, /* a collective, send or receive was called */
    LOG_EVENT_INIT_START,
    LOG_EVENT_INIT_COMPLETE, /* ncclCommInit*, or ncclCommSplit where `parent` is set */
    LOG_EVENT_LEAVE_START,
    LOG_EVENT_LEAVE_COMPLETE, /* destroy, or abort where api says so */
    LOG_EVENT_GROUP_START,
    LOG_EVENT_GROUP_END,
    LOG_EVENT_PREMULSUM /* `redop` is a handle made by ncclRedOpCreatePreMulSum */
};

enum { LOG_RANK_NONE = -1 };

/* Fields that the message does not have are 0; numbers that may be 0 have the values named. */
struct log_event {
    enum log_event_kind kind;
    uint16_t api;          /* enum api; 0: not reported (NCCL 2.3) */
    uint64_t comm, parent; /* pointers in the process */
    uint64_t comm_id; /* NCCL's commId, the same on every rank; 0: not reported (before 2.16, and
                         splits) */
    uint64_t sendbuff, recvbuff, count, stream;
    uint64_t bus;              /* PCI bus id */
    int datatype, redop, root; /* NCCL's own numbers; -1 not reported */
    int rank, nranks, device, ordinal, color,
        key; /* -1 not reported; ordinal: splitCount or childCount; rank of an operation: RCCL's */
};

/* What the message of an INFO or TRACE line says. text[bytes] need not be readable. */
void log_event_of_message(const char *text, size_t bytes, struct log_event *event);
/* What the call of a CALL line says: "ncclAllReduce(7f00,7f00,1024,7,0,0,0x55,0x66)". */
void log_event_of_call(const char *text, size_t bytes, struct log_event *event);

/* "NCCL version 2.21.5+cuda12.4" as 22105; 0 if the message is something else. */
int log_version_of(const char *text, size_t bytes);

#endif
