/* position.h: where a process stands, of the stacks of its threads: what readers of stacks share.
 */
#ifndef DDPCHECK_IMPORT_POSITION_H
#define DDPCHECK_IMPORT_POSITION_H

#include "lib/import/import.h"
#include "lib/trace/trace.h"

/* One that waits for a lock: the thread that holds it. */
struct position_thread {
    uint32_t id, holder;        /* the kernel's ids; 0 not known */
    bool is_main, moves, works; /* as in struct import_position */
    int syscall;                /* its number; -1 none, it runs; -2 not known */
    char state;                 /* of /proc: 'R', 'S', 'T'; 0 not known */
    const char *name;
    struct frame *frame; /* innermost first: Python's have no address, native ones one */
    int frames;
};

struct position_report {
    struct import_process process; /* its rank must be known */
    uint64_t time_ns;              /* since 1970; 0 not known */
    int lasts_s;                   /* it was seen there for so long; 0: once */
    bool is_gone;                  /* there is no such process any more */
    bool is_rank;                  /* its variables say so: it is no launcher */
    struct position_thread *thread;
    int threads;
};

/* What position_find says of a process. */
enum { POSITION_TEXT_BYTES = 256 };
struct position_found {
    enum place_kind place;
    bool is_named;                        /* by a function's name, not only by its file or module */
    const struct position_thread *thread; /* the one that shows it; NULL: there is none */
    char text[POSITION_TEXT_BYTES];       /* what it is in; "" its own code */
};

/* In an operation, a set-up, or a wait behind them. */
bool position_is_wait(enum place_kind place);
/* It waits for another thread to end. */
bool position_is_join(const struct frame *frame);
void position_find(const struct position_report *report, struct position_found *found);

/* Gives the sink the process, its position and the stacks of its threads. Returns 0 or -1. What
 * only waits for ranks that it has started is left out; where these are threads of one process each
 * becomes a process. */
int position_import(struct import *import, const struct position_report *report);

/* What no stack says. How long a rank has been where it is is known (DC210). */
#define LACKS_POSITIONS                                                                      \
    (LACKS_ROOT | LACKS_REDOP | LACKS_ADDRESSES | LACKS_STREAM | LACKS_GROUP | LACKS_STATE | \
     LACKS_CUDA | LACKS_START | LACKS_COUNT | LACKS_DATATYPE | LACKS_P2P | LACKS_MARKS |     \
     LACKS_PAYLOAD | LACKS_UNRETURNED | LACKS_DURATIONS | LACKS_STARTS | LACKS_DEVICE)

#endif
