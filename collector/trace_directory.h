/* trace_directory.h: what lies in a trace directory, and where.
 *
 *     DIR/<host>.db         the database of the last (or running) job
 *     DIR/old/              databases of the jobs before it
 *     DIR/rings             the path of the directory of ring files, which lies in memory if it can
 *     DIR/collector-<key>.lock  held (flock) by the collector of these rings while it runs; several
 *                           hosts or containers have one each (lib/trace/collector_lock.h); its
 *                           text is the holder's pid and host, and `sender`
 *     DIR/collector.lock    held by the first of them; the same text
 *     DIR/collector.log     messages of a collector in the background
 *     DIR/.unrecorded-*     processes that could not record (lib/trace/unrecorded_mark.h)
 *
 * The second collector of a host that shares the directory, that of a container with a /dev/shm of
 * its own, writes DIR/<host>-<key>.db. */
#ifndef DDPCHECK_TRACE_DIRECTORY_H
#define DDPCHECK_TRACE_DIRECTORY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/error.h"

/* The mode of a trace directory: its user's alone, or open to the group (DDPCHECK_GROUP=1). */
mode_t directory_mode(void);

/* Makes the directory and those above it where they are missing, and gives its absolute path. One
 * that another user has made, or that every user may write into, is refused (lib/base/own_path.h).
 * Returns 0, or -1 with err. */
int directory_make(const char *path, char real[PATH_MAX], struct error *err);

/* The directory of the ring files of trace directory `real`, made if it is not there; refused if it
 * is not this user's own. Returns 0, or -1 with err. */
int directory_rings(const char *real, char rings[PATH_MAX], struct error *err);

/* What DIR/rings says, without making anything. Returns false if there is no such directory of this
 * user. */
bool directory_read_rings(const char *real, char rings[PATH_MAX]);

/* The locks of a collector, and the database that is its own by them. */
struct directory_claim {
    int lock, first_lock; /* file descriptors; -1 none */
    uint64_t sender;      /* random; the same for each collector of these rings, so that a hub knows
                             the next one as the same host's. 0: there are no random numbers */
    char database[PATH_MAX];
};

/* Takes the lock of the collector of this directory's rings, and the first's, if nobody has it.
 * Returns 0; -1 with err; -2 if another process holds it, whose pid goes to *holder (0 not known).
 */
int directory_claim(const char *real, struct directory_claim *claim, int *holder,
                    struct error *err);
/* Checks that the open file DIR/name is a plain one of this user with one name
 * (lib/base/own_path.h). Returns 0, or -1 with err. */
int directory_check_file(int fd, const char *directory, const char *name, struct error *err);
void directory_release(struct directory_claim *claim);

/* Moves a database that nobody has open to DIR/old/<host>-<started>.db. Returns 0, or -1 with err.
 */
int directory_move_database(const char *real, const char *database, const char *started,
                            struct error *err);

/* Removes the directory of the rings, with the table of --guard, where no process has a ring in it:
 * an empty one holds nothing of anybody, and the next process makes it again. "": there is none. */
void directory_remove_rings(const char *rings);

#endif
