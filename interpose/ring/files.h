/* files.h: the trace directory, the private directory of the rings and this process's ring file.
 *
 * The trace directory (DDPCHECK_DIR, else ./ddpcheck-trace) may lie anywhere, on NFS too. The rings
 * lie in memory: in a directory of /dev/shm whose name nobody can guess, else of the same name
 * under TMPDIR or /tmp (rings_directory.h). The file `rings` of the trace directory names it. */
#ifndef DDPCHECK_FILES_H
#define DDPCHECK_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/trace/ring.h"

/* Makes the directories and this process's ring file, and fills in shim.file and shim.directory.
 * Returns false, having printed why, if the shim can't record. */
bool files_start(void);

/* The directory of the rings. */
const char *files_rings(void);
/* Whether it is in shared memory, which drivers pin; those from 550.90 on can't pin files on disk
 * (Linux from 6.5 on refuses FOLL_LONGTERM for them). */
bool files_are_in_memory(void);

/* Makes [offset, offset+bytes) of a file real, so that writing there can't raise SIGBUS. Returns 0
 * or an errno. */
int files_reserve(int fd, uint64_t offset, uint64_t bytes);

/* How the budget is shared: a process that records at all has a first segment; another thread's is
 * granted while there is room, and one ring's growth takes half of what is left at most. */
enum files_request { FILES_FIRST, FILES_THREAD, FILES_GROWTH };

/* The lock of the file's length. Returns false if this thread has it already: it was interrupted by
 * a signal meanwhile. */
bool files_lock(void);
void files_unlock(void);
/* Makes the file longer by `bytes`, in whole pages, and maps that. Returns NULL if the budget has
 * no room for it or the file system refuses. With the lock held. */
void *files_extend(uint64_t bytes, enum files_request request, uint64_t *offset);
/* Puts memory of this process's own where a piece of the parent's file was mapped. */
void files_unshare(void *at, uint64_t bytes);

/* Payload hashes that the file has room for. */
uint32_t files_hash_entries(void);

/* In the child of a fork: the file is the parent's. */
void files_forked(void);

/* Finds or makes the trace directory (absolute path into `path`) and the directory of its rings.
 * Returns false, having printed why. */
bool directory_find(char *path, uint32_t path_bytes, char *rings, uint32_t rings_bytes);

/* Leaves a mark in the trace directory: this process can't record, because of `error` (an errno).
 * Returns true if it has printed what to do, or the process has said it before. */
bool directory_mark_unrecorded(const char *directory, int error);

/* Reads a small file, such as those in /proc. Returns the length read (NUL-terminated, cut if it
 * does not fit), or -1. */
int file_read(const char *path, char *text, uint32_t bytes);

#endif
