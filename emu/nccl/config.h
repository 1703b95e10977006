/* config.h: ncclConfig_t as programs of any version pass it. */
#ifndef DDPCHECK_EMU_NCCL_CONFIG_H
#define DDPCHECK_EMU_NCCL_CONFIG_H

#include <nccl.h>

/* Fills *config from what was given (NULL: nothing) and `inherited` (NULL: the defaults), or
 * reports what is wrong with it (ncclInvalidArgument). */
ncclResult_t config_resolve(const ncclConfig_t *given, const ncclConfig_t *inherited,
                            ncclConfig_t *config);

#endif
