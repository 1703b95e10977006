/* dormant.h: finds the ranks of this host that have made no NCCL call yet: their shim is dormant,
 * and they have no ring. */
#ifndef DDPCHECK_COLLECTOR_DORMANT_H
#define DDPCHECK_COLLECTOR_DORMANT_H

#include <stdint.h>

struct collector;
struct dormant_search;

/* While nothing happens and ranks of the job are not there: adds a notice_dormant to the batch for
 * each that runs with this trace directory in its environment, and again when it stands elsewhere.
 * What can't be read is left out. */
void collector_find_dormant(struct collector *collector, uint64_t now_ns);
void dormant_search_free(struct dormant_search *search);

#endif
