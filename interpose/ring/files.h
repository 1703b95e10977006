/* files.h: the trace directory, the private directory of the rings and this process's ring file.
 *
 * The trace directory (DDPCHECK_DIR, else ./ddpcheck-trace) may lie anywhere, on NFS too. The rings
 * lie in memory: in /dev/shm/ddpcheck-<uid>-<hash of the trace directory's path>, else the same
 * name under TMPDIR or /tmp. The file `rings` of the trace directory names it. */
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

/* A segment for a thread: one that an ended thread gave back, else a new one at the file's end.
 * Returns NULL if there are RING_SEGMENTS_MAX already or the file system is full. */
struct ring_segment *files_take_segment(uint32_t thread);

/* A thread gives its segment back: another may take it. */
void files_end_segment(struct ring_segment *segment);
/* How often a segment was given back: if it changed, a new search for a free one may succeed. */
uint32_t files_segments_ended(void);
/* Whether the thread has a segment, so that calls of it were recorded. */
bool files_has_thread(uint32_t thread);

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
