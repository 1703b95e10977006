/* hub_torchrun.h: which host of a job torchrun's command line says this is. Its options may come
 * as variables as well (PET_NODE_RANK), but are seldom given so. */
#ifndef DDPCHECK_HUB_TORCHRUN_H
#define DDPCHECK_HUB_TORCHRUN_H

#include <stdbool.h>

/* Words of the command line, or of variables; NULL: not given. */
struct torchrun_options {
    const char *nnodes, *node_rank, *endpoint, *address, *port, *id;
};

/* Whether a program with these arguments is torchrun, also as a module of Python. */
bool torchrun_read(char *const *argv, struct torchrun_options *options);
/* The job's first host: `host` becomes its name, "" if the options don't say. Returns whether it is
 * this one: by its rank, or else because the rendezvous is here, as torchrun finds out too. */
bool torchrun_is_first(const struct torchrun_options *options, char *host, unsigned long bytes);
/* Where its hosts meet, "n0.29400": no other job can have that address. "" if the options don't
 * say, as of one host. */
void torchrun_find_meeting(const struct torchrun_options *options, char *meeting,
                           unsigned long bytes);

#endif
