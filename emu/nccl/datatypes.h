/* datatypes.h: the element types of NCCL. */
#ifndef DDPCHECK_EMU_NCCL_DATATYPES_H
#define DDPCHECK_EMU_NCCL_DATATYPES_H

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

bool datatype_valid(ncclDataType_t type);
/* Bytes of one element of a valid type. */
size_t datatype_bytes(ncclDataType_t type);
bool datatype_is_integer(ncclDataType_t type);
/* count elements in bytes; SIZE_MAX where that does not fit. */
size_t datatype_total(ncclDataType_t type, size_t count);

#endif
