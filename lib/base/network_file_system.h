/* network_file_system.h: whether other hosts may have a file as well. */
#ifndef DDPCHECK_NETWORK_FILE_SYSTEM_H
#define DDPCHECK_NETWORK_FILE_SYSTEM_H

#include <stdbool.h>

/* The path is on a file system that several hosts share (NFS, SMB, Lustre, FUSE, ...). False where
 * that can't be found out. */
bool network_file_system(const char *path);

#endif
