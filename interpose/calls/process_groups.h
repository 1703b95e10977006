/* process_groups.h: what programs call PyTorch's process groups.
 *
 * Since 2.15 PyTorch names a communicator by its group's number ("0"), and NCCL no longer gets
 * the description ("default_pg", or group_desc of new_group). It passes both to c10d::ProcessGroup,
 * whose setGroupName() and setGroupDesc() libddpcheck.so takes the place of, by their mangled
 * names. */
#ifndef DDPCHECK_PROCESS_GROUPS_H
#define DDPCHECK_PROCESS_GROUPS_H

#include <stdint.h>

enum { GROUP_NAME_BYTES = 48, GROUP_TITLE_BYTES = 80 };

/* A communicator (cluster-wide id) is created under this name, of `bytes`. Returns whether the
 * group of this name has a description, which `title` then holds. */
_Bool process_groups_created(uint64_t comm, const char *name, uint32_t bytes,
                             char title[GROUP_TITLE_BYTES]);

#endif
