/* parts.h: the parts of memory that ranks use in collectives, by names that are the same in every
 * process: which allocation of its size it is, in the order in which they were made, and how far
 * into it. */
#ifndef DDPCHECK_PARTS_H
#define DDPCHECK_PARTS_H

#include "analyzer/engine.h"

/* The allocations of a process, zero-initialised. */
struct memory_parts {
    struct parts_size *sizes;
    struct parts_birth *births;
};

/* An allocation was made. 0, or -1 when memory is short. */
int parts_note(struct memory_parts *parts, const struct record *record);
/* The name of the part that the operation sends, or gathers into; 0: not known. */
uint64_t parts_name(const struct memory_parts *parts, const struct operation *operation);
void parts_free(struct memory_parts *parts);

#endif
