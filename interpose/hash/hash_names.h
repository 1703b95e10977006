/* hash_names.h: how often each member of a communicator announced each name to ddpcheck_hash. */
#ifndef DDPCHECK_HASH_NAMES_H
#define DDPCHECK_HASH_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/shim/comms.h"

/* The number of this call for (member, name), or false if there are too many names. */
bool hash_names_number(const struct local_member *member, uint64_t name, uint64_t *number);

/* In the child of a fork. */
void hash_names_forked(void);

#endif
