/* operators.h: ncclRedOp_t: the built-in ones, and those a communicator was given (PreMulSum). */
#ifndef DDPCHECK_EMU_NCCL_OPERATORS_H
#define DDPCHECK_EMU_NCCL_OPERATORS_H

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

#include "emu/nccl/communicator.h"
#include "emu/nccl/reduce.h"

/* What `op` means on this communicator for this type. ncclInvalidArgument (with a warning that
 * begins with the call's name) if it is none. */
ncclResult_t operator_find(struct ncclComm *comm, const char *call, ncclRedOp_t op,
                           ncclDataType_t type, struct reduction *reduction);

/* Frees what was never destroyed. */
void operators_free(struct ncclComm *comm);

/* The element types of NCCL. */

bool datatype_valid(ncclDataType_t type);
/* Bytes of one element of a valid type. */
size_t datatype_bytes(ncclDataType_t type);
bool datatype_is_integer(ncclDataType_t type);
/* count elements in bytes; SIZE_MAX where that does not fit. */
size_t datatype_total(ncclDataType_t type, size_t count);

#endif
