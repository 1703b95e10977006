/* mapped_files.h: the object files that are mapped into this process, without the loader: it may be
 * locked. */
#ifndef DDPCHECK_MAPPED_FILES_H
#define DDPCHECK_MAPPED_FILES_H

#include <link.h>

/* Calls `see` for each executable mapping that belongs to a loaded object file, with what
 * dl_iterate_phdr would say of the file (address, name, program headers); once per such mapping.
 * Reads /proc/self/maps; where that is not possible nothing is seen. Allocates nothing and takes no
 * lock. One thread at a time may call it. */
void mapped_files_see(void (*see)(const struct dl_phdr_info *info, void *argument), void *argument);

#endif
