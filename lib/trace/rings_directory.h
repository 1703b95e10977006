/* rings_directory.h: names the directory in which the processes of a trace directory have their
 * ring files on a host.
 *
 * /dev/shm and /tmp are open to all users: one who knows the name could make the directory first,
 * and nothing would be recorded. So half of the name is random; the file DIR/rings, which its user
 * alone can read, has it. The other half says which trace directory it belongs to: a copy of that
 * file, in the copy of a trace directory, would mix two jobs' records. Used inside the user's
 * process: libc alone. */
#ifndef DDPCHECK_RINGS_DIRECTORY_H
#define DDPCHECK_RINGS_DIRECTORY_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/trace/record.h"

/* "ddpcheck-UID-" and, in hexadecimal, 128 random bits, 32 bits of the path, 32 of the inode. */
enum { RINGS_NAME_BYTES = 80, RINGS_RANDOM_WORDS = 2, RINGS_MARK_DIGITS = 8 };

/* A number that nobody can guess. Returns false if there is none to be had. */
static inline bool rings_random(uint64_t *number)
{
    return getrandom(number, sizeof *number, 0) == (ssize_t)sizeof *number;
}

/* What distinguishes trace directories. A copy differs in both. A directory that was moved, or that
 * a container has elsewhere, has its inode; on file systems that number their files anew (FUSE) it
 * has its path. Device numbers differ between hosts. */
static inline void rings_marks(const char *trace, char path_mark[RINGS_MARK_DIGITS + 1],
                               char inode_mark[RINGS_MARK_DIGITS + 1])
{
    struct stat status;
    uint64_t inode = stat(trace, &status) == 0 ? status.st_ino : 0;
    snprintf(path_mark, RINGS_MARK_DIGITS + 1, "%08x", (unsigned)string_id(trace, strlen(trace)));
    snprintf(inode_mark, RINGS_MARK_DIGITS + 1, "%08x",
             (unsigned)string_id((const char *)&inode, sizeof inode));
}

/* A new name for trace directory `trace` (its absolute path). Returns false if there is no random
 * number. */
static inline bool rings_name_make(char name[RINGS_NAME_BYTES], const char *trace)
{
    uint64_t number[RINGS_RANDOM_WORDS];
    char path_mark[RINGS_MARK_DIGITS + 1], inode_mark[RINGS_MARK_DIGITS + 1];
    for (int i = 0; i < RINGS_RANDOM_WORDS; i++)
        if (!rings_random(&number[i]))
            return false;
    rings_marks(trace, path_mark, inode_mark);
    snprintf(name, RINGS_NAME_BYTES, "ddpcheck-%u-%016llx%016llx-%s%s", (unsigned)geteuid(),
             (unsigned long long)number[0], (unsigned long long)number[1], path_mark, inode_mark);
    return true;
}

/* The name at the end of the path `rings`, if it is one that rings_name_make has made for `trace`;
 * else NULL. */
static inline const char *rings_name_of(const char *rings, const char *trace)
{
    char path_mark[RINGS_MARK_DIGITS + 1], inode_mark[RINGS_MARK_DIGITS + 1];
    const char *slash = strrchr(rings, '/'), *mark = strrchr(rings, '-');
    if (rings[0] != '/' || !slash || strncmp(slash + 1, "ddpcheck-", 9) || !mark || mark < slash ||
        strlen(slash + 1) >= RINGS_NAME_BYTES || strlen(mark + 1) != 2 * RINGS_MARK_DIGITS)
        return NULL;
    rings_marks(trace, path_mark, inode_mark);
    return !strncmp(mark + 1, path_mark, RINGS_MARK_DIGITS) ||
                   !strcmp(mark + 1 + RINGS_MARK_DIGITS, inode_mark)
               ? slash + 1
               : NULL;
}

/* A directory that nobody else can have put there or write into. */
static inline bool rings_is_private(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & 077) == 0 && access(path, W_OK | X_OK) == 0;
}

/* Makes it if it is not there. Returns whether it is private. */
static inline bool rings_make(const char *path)
{
    if (mkdir(path, 0700) == 0)
        chmod(path, 0700); /* whatever the umask */
    return rings_is_private(path);
}

#endif
