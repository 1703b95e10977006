/* setups.h: what ranks wait for each other in: operations, and the calls of setups.def. */
#ifndef DDPCHECK_SETUPS_H
#define DDPCHECK_SETUPS_H

#include <stdbool.h>

#include "lib/finding/act.h"
#include "lib/finding/code.h"
#include "lib/trace/names.h"

enum wait_kind {
    WAIT_COLLECTIVE, /* for members to issue it, or whose process ended before it was done */
    WAIT_PEER,       /* for the counterpart of a send or receive */
#define SETUP(kind, ...) WAIT_##kind,
#include "lib/finding/setups.def"
#undef SETUP
    WAIT_KINDS,
    WAIT_NONE = WAIT_KINDS
};

/* Who has to make a call before it can return on those who made it. */
enum comers {
    COMERS_OPERATION, /* no set-up */
    COMERS_RANKS,     /* every rank that the new communicator is to have */
    COMERS_MEMBERS,   /* every member of the communicator, as often as this one */
    COMERS_SURVIVORS, /* the members that the call does not leave out, as often as this one */
    COMERS_LEAVERS    /* every member, unless it has ended */
};

/* A row of setups.def; of an operation only `awaited` is set. */
struct setup_row {
    enum awaited_kind awaited;
    enum api call;
    enum comers comers;
    enum wait_kind counter; /* index into struct member's `made`; WAIT_NONE: it is not counted */
    enum code code;
    const char *todo;
};

extern const struct setup_row setup_rows[WAIT_KINDS];

/* The kind whose row names this call; WAIT_NONE: there is none. */
enum wait_kind setup_of_api(unsigned api);
static inline bool kind_is_operation(enum wait_kind kind)
{
    return setup_rows[kind].comers == COMERS_OPERATION;
}
/* The ranks that wait in it are those of the communicator that it makes. */
static inline bool kind_makes_comm(enum wait_kind kind)
{
    return setup_rows[kind].comers == COMERS_RANKS;
}
/* Ranks make the call any number of times, so that one of them may leave it out. */
static inline bool kind_is_counted(enum wait_kind kind)
{
    return !kind_is_operation(kind) && setup_rows[kind].counter != WAIT_NONE;
}

#endif
