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

/* Fetches the database, trying again for wait_s seconds while no hub answers. With `follow` a
 * thread goes on with it. Returns 0 (job_copy_close it), or -1 with err. */
int job_copy_open(struct job_copy **copy, const char *address, double wait_s, bool follow,
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

#endif
