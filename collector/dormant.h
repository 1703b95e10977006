/* dormant.h: finds the ranks of this host that have made no NCCL call yet: their shim is dormant,
 * and they have no ring. */
#ifndef DDPCHECK_COLLECTOR_DORMANT_H
#define DDPCHECK_COLLECTOR_DORMANT_H

#include <stdbool.h>
#include <stdint.h>

struct collector;
struct dormant_search;

/* A rank without a call: rank -1 if that is not known; place "" if it is gone. */
struct dormant_notice {
    int rank, pid;
    const char *place;
};

/* While nothing happens and ranks of the job are not there: adds a notice_dormant to the batch for
 * each that runs with this trace directory in its environment, and again when it stands elsewhere.
 * What can't be read is left out. */
void collector_find_dormant(struct collector *collector, uint64_t now_ns);
/* Adds one notice_dormant of a process to the batch. False: there is no room. */
bool dormant_add(struct collector *collector, int process, const struct dormant_notice *notice,
                 uint64_t now_ns);
void dormant_search_free(struct dormant_search *search);

#endif
