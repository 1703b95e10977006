/* variable.h: __device__, __constant__ and __managed__ variables. The host names one by the address
 * of its shadow; each device has memory of its own for it, zero at first (an initial value is in
 * the device code, which is not read). */
#ifndef DDPCHECK_EMU_VARIABLE_H
#define DDPCHECK_EMU_VARIABLE_H

#include <stddef.h>

/* All return a cudaError_t. */
int variable_register(const void *module, const void *host, const char *name, size_t bytes);
/* Sets *host to memory that host and devices share. */
int variable_register_managed(const void *module, void **host, const char *name, size_t bytes);
void variable_unregister(const void *module);
/* The variable's memory on the current device. */
int variable_find(const void *host, void **pointer, size_t *bytes);

#endif
