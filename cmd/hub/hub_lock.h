/* hub_lock.h: the lock by which readers of a job's database see that the job may go on. */
#ifndef DDPCHECK_HUB_LOCK_H
#define DDPCHECK_HUB_LOCK_H

#define HUB_LOCK_NAME "collector-hub.lock" /* as collectors have one in their directory */

/* Locks the file in the folder, which is created if necessary. Returns its descriptor, which the
 * caller closes, or -1: then readers take the database for that of a job that was killed. */
int hub_lock(const char *folder);

#endif
