/* version.h: what newer versions of CUPTI have more. */
#ifndef DDPCHECK_EMU_CUPTI_VERSION_H
#define DDPCHECK_EMU_CUPTI_VERSION_H

#include <stddef.h>

/* How many bytes a record of a kernel, copy or memory set has behind the fields that are filled
 * in. */
size_t cupti_appended_bytes(void);

#endif
