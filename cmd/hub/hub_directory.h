/* hub_directory.h: the folders of a hub are its user's own: they have the token and the server's
 * configuration. */
#ifndef DDPCHECK_HUB_DIRECTORY_H
#define DDPCHECK_HUB_DIRECTORY_H

#include "lib/base/error.h"

/* Makes the folder for its user alone where it is missing; one that another user has prepared is
 * refused (lib/base/own_path.h). Returns 0, or -1 with err. */
int hub_directory_make(const char *path, struct error *err);

/* Checks a file of the folder that may be missing, before the server opens it by its name. Returns
 * 0, or -1 with err. */
int hub_directory_check_file(const char *directory, const char *name, struct error *err);

/* Checks the open file DIR/name. Returns 0, or -1 with err. */
int hub_directory_check_opened(int fd, const char *directory, const char *name, struct error *err);

/* The lock by which readers of a job's database see that the job may go on. */

#define HUB_LOCK_NAME "collector-hub.lock" /* as collectors have one in their directory */

/* Locks the file in the folder, which is created if necessary. Returns its descriptor, which the
 * caller closes, or -1: then readers take the database for that of a job that was killed. */
int hub_lock(const char *folder);

#endif
