/* operators.c: the reduction operators, built in or created with a scalar, and the element types.
 */
#include "emu/nccl/operators.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emu/nccl/errors.h"

struct scale_operator {
    struct scale_operator *next;
    ncclRedOp_t handle;
    ncclDataType_t type;
    struct reduction reduction;
};

/* Handles are never used twice in a process, so one of another communicator is noticed. */
static atomic_int handles = ncclNumOps;

/* With comm->lock held. */
static struct scale_operator **find_custom_operator(struct ncclComm *comm, ncclRedOp_t op)
{
    struct scale_operator **link = &comm->operators;

    while (*link && (*link)->handle != op)
        link = &(*link)->next;
    return link;
}

ncclResult_t operator_find(struct ncclComm *comm, const char *call, ncclRedOp_t op,
                           ncclDataType_t type, struct reduction *reduction)
{
    const struct scale_operator *found;
    bool fits = false;

    if ((int)op < 0)
        return fail(ncclInvalidArgument, "%s : invalid reduction operation %d", call, (int)op);
    if (op < ncclNumOps) {
        *reduction = reduction_builtin(op, type, comm->ranks);
        return ncclSuccess;
    }
    pthread_mutex_lock(&comm->lock);
    found = *find_custom_operator(comm, op);
    if (found) {
        fits = found->type == type;
        *reduction = found->reduction;
    }
    pthread_mutex_unlock(&comm->lock);
    if (!found)
        return fail(ncclInvalidArgument, "%s : reduction operation %d unknown to this communicator",
                    call, (int)op);
    if (!fits)
        return fail(ncclInvalidArgument,
                    "%s : reduction operation type does not match the data type", call);
    return ncclSuccess;
}

void operators_free(struct ncclComm *comm)
{
    while (comm->operators) {
        struct scale_operator *next = comm->operators->next;

        free(comm->operators);
        comm->operators = next;
    }
}

static ncclResult_t create_operator(struct ncclComm *comm, ncclRedOp_t *op, const void *scalar,
                                    ncclDataType_t type, ncclScalarResidence_t residence)
{
    struct scale_operator *operator;

    if (!op || !scalar)
        return fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum : %s argument is NULL",
                    op ? "scalar" : "op");
    if (!datatype_valid(type))
        return fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum : invalid type %d", (int)type);
    if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate)
        return fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum : invalid residence %d",
                    (int)residence);
    operator= calloc(1, sizeof(*operator));
    if (!operator)
        return fail(ncclSystemError, "ncclRedOpCreatePreMulSum : out of memory");
    operator->handle =(ncclRedOp_t) atomic_fetch_add(&handles, 1);
    operator->type = type;
    operator->reduction =(struct reduction){
        .op = REDUCTION_PREMUL, .combine = COMBINE_SUM, .scales = true};
    if (residence == ncclScalarHostImmediate)
        memcpy(&operator->reduction.scalar, scalar, datatype_bytes(type));
    else
        operator->reduction.device_scalar = scalar;
    *op = operator->handle;
    pthread_mutex_lock(&comm->lock);
    operator->next = comm->operators;
    comm->operators = operator;
    pthread_mutex_unlock(&comm->lock);
    return ncclSuccess;
}

PUBLIC(ncclRedOpCreatePreMulSum);
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t handle)
{
    struct ncclComm *comm = communicator_get(handle);
    ncclResult_t result;

    if (!comm)
        return fail(ncclInvalidArgument,
                    "ncclRedOpCreatePreMulSum : comm argument is NULL or not a communicator");
    result = communicator_ready(comm);
    if (!result)
        result = create_operator(comm, op, scalar, type, residence);
    communicator_put(comm);
    return result;
}

PUBLIC(ncclRedOpDestroy);
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t handle)
{
    struct ncclComm *comm;
    struct scale_operator **link, *found;

    if ((int)op >= 0 && op < ncclNumOps)
        return fail(ncclInvalidArgument, "ncclRedOpDestroy : operator is a NCCL builtin");
    comm = communicator_get(handle);
    if (!comm)
        return fail(ncclInvalidArgument,
                    "ncclRedOpDestroy : comm argument is NULL or not a communicator");
    pthread_mutex_lock(&comm->lock);
    link = find_custom_operator(comm, op);
    found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&comm->lock);
    communicator_put(comm);
    free(found);
    return found ? ncclSuccess
                 : fail(ncclInvalidArgument,
                        "ncclRedOpDestroy : operator unknown to this communicator");
}

/* --- datatypes --- */

static const struct {
    unsigned char bytes;
    bool integer;
} types[ncclNumTypes] = {
    [ncclInt8] = {1, true},      [ncclUint8] = {1, true},       [ncclInt32] = {4, true},
    [ncclUint32] = {4, true},    [ncclInt64] = {8, true},       [ncclUint64] = {8, true},
    [ncclFloat16] = {2, false},  [ncclFloat32] = {4, false},    [ncclFloat64] = {8, false},
    [ncclBfloat16] = {2, false}, [ncclFloat8e4m3] = {1, false}, [ncclFloat8e5m2] = {1, false},
};

bool datatype_valid(ncclDataType_t type)
{
    return (int)type >= 0 && type < ncclNumTypes;
}

size_t datatype_bytes(ncclDataType_t type)
{
    return types[type].bytes;
}

bool datatype_is_integer(ncclDataType_t type)
{
    return types[type].integer;
}

size_t datatype_total(ncclDataType_t type, size_t count)
{
    size_t total;

    return __builtin_mul_overflow(count, datatype_bytes(type), &total) ? SIZE_MAX : total;
}
