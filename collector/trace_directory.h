/* trace_directory.h: what lies in a trace directory, and where.
 *
 *     DIR/<host>.db         the database of the last (or running) job
 *     DIR/old/              databases of the jobs before it
 *     DIR/rings             the path of the directory of ring files, which lies in memory if it can
 *     DIR/collector.lock    held (flock) by the collector while it runs; its text is the holder's
 * pid DIR/collector.log     messages of a collector in the background */
#ifndef DDPCHECK_TRACE_DIRECTORY_H
#define DDPCHECK_TRACE_DIRECTORY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"

/* Makes the directory and those above it where they are missing, and gives its absolute path.
 * Returns 0, or -1 with err. */
int directory_make(const char *path, char real[PATH_MAX], struct error *err);

/* The directory of the ring files of trace directory `real`, made if it is not there; refused if it
 * is not this user's own. Returns 0, or -1 with err. */
int directory_rings(const char *real, char rings[PATH_MAX], struct error *err);

/* What DIR/rings says, without making anything. Returns false if there is no such directory of this
 * user. */
bool directory_read_rings(const char *real, char rings[PATH_MAX]);

/* Takes the collector's lock. Returns a file descriptor; -1 with err; -2 if another process holds
 * it, whose pid goes to *holder (0 not known). */
int directory_lock(const char *real, int *holder, struct error *err);

/* The path of this host's database. Returns 0, or -1 with err. */
int directory_database(const char *real, char database[PATH_MAX], struct error *err);

/* Moves a database that nobody has open to DIR/old/<host>-<started>.db. Returns 0, or -1 with err.
 */
int directory_move_database(const char *real, const char *database, const char *started,
                            struct error *err);

#endif
