/* check.h: what a check is: everything about one code, in one file of checks/ and one line of
 * checks.def. */
#ifndef DDPCHECK_CHECK_H
#define DDPCHECK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/finding/code.h"
#include "lib/finding/finding.h"

/* Whose records a check compares. */
enum scope {
    SCOPE_PROCESS, /* those of one process, so that one host's are enough */
    SCOPE_CALLS, /* one process's records suffice; the hub runs it too, because its findings explain
                    waits of other hosts */
    SCOPE_JOB    /* those of several ranks */
};

/* Records that a process may have lost (DC901). */
enum loss {
    LOSS_CALLS = 1 << 0,          /* of collectives, waits and communicators */
    LOSS_CUDA = 1 << 1,           /* of CUDA calls */
    LOSS_HASHES = 1 << 2,         /* of what buffers hold */
    LOSS_CALLS_ANYWHERE = 1 << 3, /* LOSS_CALLS of any process of the job */
};

/* What happens, as the checks learn of it. The fields of struct event (engine.h) that each kind has
 * are named in brackets; process is always that of the thread or the operation. */
enum event_kind {
    EVENT_NONE,      /* no check wants it */
    EVENT_OPERATION, /* one was issued [operation] */
    EVENT_REFUSED,   /* a collective that --guard refused: NCCL never got it [operation] */
    EVENT_SETUP,     /* ENTER of an init, or notice_member [process, record, member or NULL] */
    EVENT_LAUNCH,    /* [thread, record] */
    /* A copy, an allocation, a stream made or destroyed, an event, a graph; ENTER of a wait.
     * [thread, record] */
    EVENT_CALL,
    EVENT_RANGE,     /* any RANGE [thread, record] */
    EVENT_ITERATION, /* the thread's is over; thread->loop shows it [thread] */
    /* ENTER of any NCCL call, also of one on a communicator that has ended (RECORD_FLAG_GONE),
     * after the model has taken it in. [thread, record] */
    EVENT_NCCL,
    EVENT_LEAVE,   /* of any call; thread->enter is still its ENTER if that was not lost [thread,
                      record] */
    EVENT_GROUP,   /* the calls of an ncclGroup, before each is issued; not of a group that is too
                      large to be kept [thread, operation, count] */
    EVENT_BLIND,   /* notice_blind [process, record] */
    EVENT_SAID,    /* notice_said [process, record] */
    EVENT_SILENT,  /* notice_silent [process, record] */
    EVENT_PAYLOAD, /* all is known, or will be (payloads.h) [payload] */
    EVENT_COMM_STATE, /* ncclCommGetAsyncError said another than before [thread, record] */
    EVENT_LOST,       /* more records were lost [process] */
    EVENT_WAITS,      /* on ticks and at the end [graph] */
    EVENT_SLOWDOWN,   /* something slows the job down, or goes on to (speed.h) [slowdown] */
    EVENT_JUDGED,     /* all that slows it down has been handled so, of its iterations from
                         slowdown->first on [slowdown] */
    EVENT_RELEASE,    /* communicators that were forgotten are about to be freed, but for those to
                         which a check refers: it calls forgotten_hold */
    EVENT_FINISH,     /* the trace ends here */
    EVENT_KINDS
};

struct analyzer;
struct event;
/* Want of memory is noted in analyzer->failed; the handlers that follow are called all the same. */
typedef void event_handler(struct analyzer *analyzer, const struct event *event);

/* What a check can keep zeroed state for. */
enum owner { OWNER_JOB, OWNER_PROCESS, OWNER_THREAD, OWNER_COMM, OWNER_MEMBER, OWNERS };

enum {
    CHECK_COUNT =
#define CHECK(number, name, family) 1 +
#include "lib/finding/checks.def"
#undef CHECK
        0
};

/* A list of codes, ended by CODE_NONE. */
#define CODES(...)             \
    (const enum code[])        \
    {                          \
        __VA_ARGS__, CODE_NONE \
    }

/* Lists that several checks explain. A mismatch or a bad access makes hangs, errors and exits; a
 * hang makes watchdogs end ranks. DC104 is in no list: ranks that only reduce differently go on in
 * step. */
#define CODES_HANGS \
    DC108, DC201, DC202, DC203, DC204, DC205, DC206, DC207, DC208, DC209, DC210, DC211
#define CODES_HAZARDS DC301, DC302, DC303, DC304, DC305
/* A rank in another position of its training loop: why the calls differ, where they do. */
#define CODES_LOOPS    DC504, DC505, DC506
#define CODES_DIVERGED DC101, DC102, DC103, DC105, DC106, DC107, CODES_LOOPS
#define CODES_WHY      CODES_DIVERGED, DC507, DC110, DC503

/* How the calls of two sides differ. */
enum call_difference {
    DIFFERENCE_ANY,
    DIFFERENCE_BYTES,   /* one count is the other times the size of the datatype, and no
                            frame is Python's */
    DIFFERENCE_HALF,    /* one is float16 or bfloat16, the other another type */
    DIFFERENCE_INTEGER, /* one is of integers, the other of floating-point numbers */
};

/* What is seen of a side of a finding where a cause fits: one of these is enough. Words are
 * separated by '|'; each is a part of a frame's function or file. */
struct sign {
    uint32_t signals; /* SIGN_SIGNAL: it was killed by one of them */
    bool failed;      /* it exited with a status that is not 0, or after an exception */
    const char
        *exception;      /* names of types, as in `function`: an exception of that type ended it */
    const char *absent;  /* frames of ranks that have not made the call */
    const char *waiting; /* frames of ranks that have */
    const char
        *function; /* names of functions, each with a blank behind it: it called one of them */
    const enum did *did;             /* it did or does one of these: SIGN_DID */
    enum call_difference difference; /* this and another side */
    bool rank_0_alone;               /* in addition: the side is rank 0 and no other */
};
#define SIGN_DID(...) ((const enum did[]){__VA_ARGS__, DID_COUNT})
/* Frames of code that one rank runs alone, of data loaders and of compilers. A blank ends the
 * function: autograd's own evaluate_function is none of them. */
#define SIGN_RANK_0_WORK                                                            \
    "evaluate |evaluate_model |validate |validation |save |save_model |save_check|" \
    "state_dict|/torch/serialization.py|/distributed/checkpoint/"
#define SIGN_LOADER                                  \
    "/torch/utils/data/|/multiprocessing/queues.py|" \
    "/multiprocessing/connection.py|/fsspec/"
#define SIGN_NEW_GROUP      "new_group |_new_group_with_tag "
#define SIGN_COMPILER       "/torch/_dynamo/|/torch/_inductor/|/triton/"
#define SIGN_SIGNAL(number) (1u << (number))

/* A usual cause of a finding, and what to look at to distinguish it from the other causes. */
struct cause {
    const char *what;
    const char *look;
    struct sign sign; /* left out: what is recorded does not show it */
};
#define CAUSES(...) ((const struct cause[]){__VA_ARGS__, {NULL, NULL, {0}}})

struct check {
    enum code code;
    const char *name; /* "in-place-write" */
    enum severity severity;
    enum scope scope;
    uint32_t needs; /* enum lack: nothing is reported of a source that can't say one of these */
    /* enum loss: without one of these records nothing is reported of the process; and without one
     * of these, findings are only possible and some are missed. */
    uint8_t off_without, weak_without;
    /* While a finding of this check is open, findings of these codes on the same communicator, or
     * that concern one of its processes, are its consequences. explains_later: only those that
     * began later: a rank that has diverged, left or failed on one communicator does the same on
     * its others. NULL: none. */
    const enum code *explains, *explains_later;
    const char *title;
    const char *text; /* explain: what it means, how it shows, when it can be wrong; paragraphs */
    const struct cause
        *causes;        /* the most common first, ended by NULLs; NULL where there are none */
    const char *source; /* the documents that its rule comes from; NULL for those about the trace */
    const char *example; /* minimal faulty program, C; NULL where there is none, as the others */
    const char *fix_c;
    const char *fix_torch;
    event_handler *on[EVENT_KINDS]; /* NULL where it does not care */
    /* Bytes of state that the core keeps for it with each owner, made at its first use (states.h),
     * and what frees all that the state holds. */
    size_t state_bytes[OWNERS];
    void (*state_end[OWNERS])(void *state);
};

#define CHECK(number, name, family) extern const struct check check_##name;
#include "lib/finding/checks.def"
#undef CHECK

/* The checks in the order of checks.def. */
extern const struct check *const checks[CHECK_COUNT];
/* All checks that this build has, in order of their codes: the first for NULL, NULL after the
 * last. */
const struct check *check_next(const struct check *before);
/* The check of a code; NULL for CODE_NONE. */
const struct check *check_of(enum code code);
/* The check whose code has this name ("DC102"), or NULL. */
const struct check *check_find(const char *name);
static inline bool code_list_has(const enum code *codes, enum code code)
{
    while (codes && *codes && *codes != code)
        codes++;
    return codes && *codes;
}

/* Adds the checks that `is_listed` selects by `what`, grouped by family, in the order of their
 * codes: "mismatch (DC101 to DC107, DC109), hang (DC201, DC203)". */
struct text;
void check_list_add(struct text *text, bool (*is_listed)(const struct check *check, unsigned what),
                    unsigned what);

/* Whether findings of `code` are consequences of one of this check; later: they began later. */
static inline bool check_explains(const struct check *cause, enum code code, bool later)
{
    return code_list_has(cause->explains, code) ||
           (later && code_list_has(cause->explains_later, code));
}

#endif
