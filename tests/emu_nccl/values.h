/* values.h: numbers of any NCCL type, by a plain and independent way: every small float is
 * looked up among all values of its type. Only exact values are stored. */
#ifndef DDPCHECK_TESTS_EMU_NCCL_VALUES_H
#define DDPCHECK_TESTS_EMU_NCCL_VALUES_H

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

size_t value_bytes(ncclDataType_t type);
bool value_signed(ncclDataType_t type);
double value_load(ncclDataType_t type, const void *array, size_t index);
/* Fails the test if the type can't hold it exactly. */
void value_store(ncclDataType_t type, void *array, size_t index, double value);
/* A small float's bits as a number, by the definition of the format. */
double value_of_bits(ncclDataType_t type, unsigned bits);

#endif
