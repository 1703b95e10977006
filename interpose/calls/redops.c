/* redops.c: records NCCL's user-defined reduction operators. */
#include <string.h>

#include "interpose/record/emit_call.h"
#include "interpose/ring/emit.h"
#include "interpose/calls/recording.h"

/* The bits of a scalar that lies in host memory, by NCCL's datatypes. */
static uint64_t read_scalar(const void *scalar, ncclDataType_t type)
{
    static const uint8_t bytes[ncclNumTypes] = {
        [ncclInt8] = 1,    [ncclUint8] = 1,    [ncclInt32] = 4,      [ncclUint32] = 4,
        [ncclInt64] = 8,   [ncclUint64] = 8,   [ncclFloat16] = 2,    [ncclFloat32] = 4,
        [ncclFloat64] = 8, [ncclBfloat16] = 2, [ncclFloat8e4m3] = 1, [ncclFloat8e5m2] = 1,
    };
    uint64_t bits = 0;
    if (scalar && (unsigned)type < ncclNumTypes)
        memcpy(&bits, scalar, bytes[type]);
    return bits;
}

static void set_redop_comm(struct recorded_call *call, struct record *record, ncclComm_t comm)
{
    const struct local_member *member = comms_find(comm);
    if (!member && (member = comms_find_ended(comm)))
        record->flags |= RECORD_FLAG_GONE;
    record->redop.comm = call->comm = member ? member->comm : 0;
}

void redop_create_enter(struct recorded_call *call, const void *scalar, ncclDataType_t type,
                        ncclScalarResidence_t residence, ncclComm_t comm)
{
    struct record record = {0};
    set_redop_comm(call, &record, comm);
    call->scalar = residence == ncclScalarHostImmediate ? read_scalar(scalar, type) : 0;
    call->on_device = residence != ncclScalarHostImmediate;
    record.redop.scalar = call->scalar;
    record.redop.datatype = (uint8_t)type;
    emit_enter(call, &record, NULL);
}

void redop_create_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t comm,
                        const ncclRedOp_t *op)
{
    bool made = result == ncclSuccess && op;
    if (made)
        comms_premul_add(comm, (int)*op, call->scalar, call->on_device);
    emit_leave(call, result, made ? (uint64_t)*op : 0);
}

void redop_destroy_enter(struct recorded_call *call, ncclRedOp_t op, ncclComm_t comm)
{
    struct record record = {.redop = {.handle = (uint64_t)op, .datatype = TYPE_NONE}};
    const struct premul *premul = comms_premul_find(comm, (int)op);
    set_redop_comm(call, &record, comm);
    record.redop.scalar = premul ? premul->scalar : 0;
    emit_enter(call, &record, NULL);
    comms_premul_remove(comm, (int)op);
}
