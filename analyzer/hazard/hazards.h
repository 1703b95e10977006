/* hazards.h: conflicting accesses that nothing orders, over one interval map per process (and one
 * per capture).
 *
 * Every piece of work is looked up when it is put on its stream: whatever touches the same memory,
 * one of the two writing, one of the two an operation of NCCL, must be ordered before it (order.h).
 * The rules of DC301, DC302, DC303 and DC305 (checks/) say which finding a conflict is. Work then
 * enters the map until the host has seen it done, or until later work covers it that is ordered
 * after it: who comes after that one comes after both.
 *
 * Conflicts between the same two places of the program are one finding, whichever comes first, and
 * a piece of work is reported of once: the first conflict is the fault, what follows from it is
 * not. A finding is reported at the next tick, which comes after all rings were read: records that
 * were lost, and could hold the missing order, have been counted by then, and what was not reported
 * is dropped. */
#ifndef DDPCHECK_HAZARDS_H
#define DDPCHECK_HAZARDS_H

#include "analyzer/hazard/accesses.h"
#include "analyzer/findings.h"
#include "analyzer/model/order.h"
#include "analyzer/hazard/intervals.h"

struct conflict {
    struct process *process;
    const struct flight *earlier, *later;
    struct access before, after; /* of the two */
};

/* What a kind of conflict is called. */
struct hazard_rule {
    const struct check *check;
    bool (*applies)(const struct conflict *conflict);
    enum certainty (*certainty)(const struct conflict *conflict);
    enum headline headline;
    enum advice advice;
    enum severity (*severity)(const struct conflict *conflict); /* NULL: the check's */
};

extern const struct hazard_rule hazard_write, hazard_read, hazard_fill, hazard_operations;
extern const struct hazard_rule hazard_write_in_group, hazard_read_in_group;

/* Two places of the program, in any order, and what is between them. */
struct hazard_place {
    uint64_t stack, function;
    uint16_t api;
};
struct hazard_key {
    uint64_t comm;
    int rank; /* in comm: of several members in one process each has its own */
    struct hazard_place place[2];
    enum certainty certainty;
    enum severity severity;
};

struct hazard_place hazard_place_of(const struct record *record);

/* The state of the process, made if it is not there; NULL with errno = ENOMEM. */
struct hazards *hazards_of(struct process *process);
/* Records were lost: order may be missing, from now on nothing is found. */
bool hazards_are_off(const struct hazards *hazards);
void hazards_switch_off(struct hazards *hazards);

/* Looks up the event's work, which was just put on its stream, and enters it. */
void hazards_put(struct analyzer *analyzer, const struct event *event, const struct work *work,
                 enum flight_kind kind, const struct use *use, uint32_t uses);
/* The same for all work of a graph, which the event launches on thread->work. */
void hazards_launch_graph(struct analyzer *analyzer, const struct event *event);
/* The operation that uses [begin, end) and is not ordered before the next work on `stream` (NULL:
 * before the host); the latest. NULL if there is none. Valid until the next change. */
const struct flight *hazards_in_flight(struct process *process, uint64_t begin, uint64_t end,
                                       const struct stream_state *stream);
/* Calls `visit` for the member of each operation that is kept. */
void hazards_visit_members(const struct process *process,
                           void (*visit)(void *context, const struct member *member),
                           void *context);
/* The memory is freed or allocated anew: the allocator orders its uses. */
void hazards_forget_memory(struct process *process, uint64_t begin, uint64_t end);
/* This rank of the communicator finalizes, destroys or aborts it, which ends the rank's operations;
 * RECORD_NO_RANK: all ranks of the process. */
void hazards_forget_member(struct process *process, uint64_t comm, int rank);

/* Looks up work between a call of NCCL and the end of its ncclGroup, which launches the call: the
 * work runs before it (hazard_group.c). */
void hazards_check_group(const struct event *event, const struct work *work, enum flight_kind kind,
                         const struct use *use, uint32_t uses);
/* Makes the finding of a conflict. Returns FLIGHT_REPORTED_*. */
int hazard_found(const struct hazard_rule *rule, const struct conflict *conflict);
/* Counts a hazard; returns where its finding is to be made if it is new, else NULL. */
struct draft *hazards_found(struct process *process, const struct hazard_key *key,
                            uint64_t time_ns);
/* The latest operation that gives the finding its number. */
void hazard_number(struct draft *draft, const struct flight *operation);
/* What headlines say of side `side`, which is this flight, beside what it did: the operation's
 * number and communicator, whose title is written to `title`. */
void flight_values(const struct flight *flight, int side, struct values *values,
                   char title[COMM_TITLE_BYTES]);
/* What it is; `name` holds the kernel's. */
struct act flight_act(const struct process *process, const struct flight *flight, char *name,
                      size_t bytes);

/* Reports what was found up to the tick. */
void hazards_report(struct analyzer *analyzer);
void hazards_free(struct hazards *hazards);

/* The end of the text of a check that rests on what orders work. */
#define HAZARD_ORDER_TEXT                                                                          \
    "Only what CUDA defines orders work: the same stream, events, the legacy default stream, and " \
    "waits of the host (in any thread). Work that happened to be done in time was not ordered. "   \
    "False positive: calls that ddpcheck does not see may have ordered the two. It is not "        \
    "reported for work around waits for events whose record was not seen, for work around the "    \
    "default stream while there are unknown streams, and after records of the process were lost "  \
    "(DC901). --certain hides possible findings."

#endif
