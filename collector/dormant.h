/* dormant.h: finds the ranks of this host that do nothing: those that have made no NCCL call yet,
 * whose shim is dormant and has no ring, and those that were stopped. */
#ifndef DDPCHECK_COLLECTOR_DORMANT_H
#define DDPCHECK_COLLECTOR_DORMANT_H

#include <stdbool.h>
#include <stdint.h>

struct candidates;
struct collector;
struct dormant_search;

/* A rank without a call: rank -1 if that is not known; place "" if it is gone. */
struct dormant_notice {
    int rank, pid;
    const char *place;
};

/* Adds one notice_dormant of a process to the batch. False: there is no room. */
bool dormant_add(struct collector *collector, int process, const struct dormant_notice *notice,
                 uint64_t now_ns);
/* Adds an interned string of a process, of that string_id, to the batch. False: there is no room.
 */
bool dormant_add_text(struct collector *collector, int process, const char *text, uint64_t id,
                      uint64_t now_ns);
/* Marks the candidates that are recorded, and those that started them. False: which of them are
 * recorded can't be seen from here, as in another pid namespace. */
bool dormant_mark_recorded(const struct collector *collector, struct candidates *candidates);
void dormant_search_free(struct dormant_search *search);

/* While nothing happens: adds a notice_dormant to the batch for each rank that is not there yet and
 * runs with this trace directory in its environment, and again when it stands elsewhere. Adds a
 * notice_stopped for each process that was stopped (SIGSTOP, Ctrl-Z in a terminal, a debugger) or
 * goes on. What can't be read is left out. */
void collector_find_idle(struct collector *collector, uint64_t now_ns);

#endif
