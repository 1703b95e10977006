/* operators.h: ncclRedOp_t: the built-in ones, and those a communicator was given (PreMulSum). */
#ifndef DDPCHECK_EMU_NCCL_OPERATORS_H
#define DDPCHECK_EMU_NCCL_OPERATORS_H

#include "emu/nccl/communicator.h"
#include "emu/nccl/reduce.h"

/* What `op` means on this communicator for this type. ncclInvalidArgument (with a warning that
 * begins with the call's name) if it is none. */
ncclResult_t operator_find(struct ncclComm *comm, const char *call, ncclRedOp_t op,
                           ncclDataType_t type, struct reduction *reduction);

/* Frees what was never destroyed. */
void operators_free(struct ncclComm *comm);

#endif
