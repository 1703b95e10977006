/* job_copy.h: what the hub of a job knows, as a trace on this machine: nats://TOKEN@HOST:PORT in
 * the place of a trace.
 *
 * The pages of the hub's database that changed are fetched, and become a database in a private
 * directory, which is removed at the end. Every reader of traces can open it. */
#ifndef DDPCHECK_JOB_COPY_H
#define DDPCHECK_JOB_COPY_H

#include <stdbool.h>

#include "lib/base/error.h"

struct job_copy;

/* Whether an argument is the address of a hub. */
bool job_copy_is_address(const char *argument);
/* "host:4222/JOB" of "nats://TOKEN@host:4222/JOB". */
const char *job_copy_place(const char *address);

/* Fetches the database, trying again for wait_s seconds while no hub answers. With `follow` a
 * thread goes on with it. Returns 0 (job_copy_close it), or -1 with err. */
int job_copy_open(struct job_copy **copy, const char *address, double wait_s, bool follow,
                  struct error *err);
/* Fetches it once, of a server that is there and a hub that answers within this time. */
int job_copy_open_within(struct job_copy **copy, const char *address, double within_s,
                         struct error *err);
/* Begins to follow a hub, which may not answer yet: until it does there is no database. NULL when
 * memory is short, or a folder or thread can't be had. */
struct job_copy *job_copy_follow(const char *address);
void job_copy_close(struct job_copy *copy);

/* Valid until job_copy_close: the database, and the address without its token. */
const char *job_copy_database(const struct job_copy *copy);
const char *job_copy_name(const struct job_copy *copy);
/* What is wrong just now, for the status line; empty: nothing. For any thread. */
void job_copy_trouble(void *copy, struct error *trouble);

/* Lets a command that reads traces take addresses of hubs as well.
 *
 *     struct job_copies copies;
 *     if (job_copies_open(&copies, argv, argc, &err) < 0)
 *         return command_fail(&err);
 *     ... argv has paths of databases only
 *     job_copies_close(&copies); */

enum { JOB_COPIES_MAX = 16 };

struct job_copies {
    struct job_copy *copy[JOB_COPIES_MAX];
    int count;
};

/* Replaces the arguments that are addresses of hubs by the databases of copies, as they are now.
 * Returns 0 (job_copies_close them), or -1 with err. */
int job_copies_open(struct job_copies *copies, char **argv, int argc, struct error *err);
void job_copies_close(struct job_copies *copies);
/* What people know a path by: the hub's address, if it is a copy's. */
const char *job_copies_name(const struct job_copies *copies, const char *path);

#endif
