/* iteration.h: where in its training loop a thread is, reported by NVTX ranges.
 *
 * An iteration is the outermost range whose name says so (ranges.h), or, in a program without such
 * ranges, what lies between two steps of the same optimizer (PyTorch's emit_nvtx gives no more).
 * Push and pop nest per thread and domain; a range that was started lies on the stack of the thread
 * that started it until any thread ends it.
 *
 * Ranges travel in the rings that fill first: a process that lost bulk records has no known place
 * any more. */
#ifndef DDPCHECK_ITERATION_H
#define DDPCHECK_ITERATION_H

#include "analyzer/model/ranges.h"
#include "lib/trace/record.h"

struct thread;
struct process;
struct member;
struct operation;
struct event;

enum {
    THREAD_RANGES_MAX = 64, /* ranges kept of one thread; deeper ones are only counted */
    LOOP_STEPS_MAX = 8      /* optimizers of one iteration that are distinguished */
};

struct open_range {
    uint64_t text, domain; /* string ids */
    uint64_t id;           /* of a started range; 0: pushed */
    struct range_meaning meaning;
};

/* An optimizer's steps in one iteration. */
struct loop_steps {
    uint64_t model, text;
    uint32_t count;          /* in this iteration */
    uint64_t stack, time_ns; /* of the last */
    bool stack_is_address;
};

struct loop {
    bool open;               /* in an iteration */
    bool has_iterations;     /* some range said that it is one; else steps end iterations */
    uint64_t ordinal;        /* iterations begun, from 1 */
    struct open_range range; /* of this iteration */
    uint64_t begin_ns;
    uint64_t boundary;               /* model of the step that ends iterations, + 1; 0 none yet */
    uint32_t micro_steps, backwards; /* begun in this iteration */
    struct {
        uint64_t model;
        uint32_t count;
    } backward[LOOP_STEPS_MAX]; /* backward passes by model, those that name one */
    uint32_t backward_models;
    struct loop_steps
        steps[LOOP_STEPS_MAX]; /* of all iterations so far; count 0: not in this one */
    uint32_t steps_count;
};

/* Where an operation was issued. All 0: not known. */
struct loop_place {
    const struct thread *owner; /* whose loop it is; to be compared only */
    uint64_t iteration;         /* of one process: never the same in two iterations; 0 not known */
    uint64_t
        number; /* that the range's name gives, valid if `numbered`: comparable between ranks */
    bool numbered, in_backward;
    enum range_kind phase; /* of the innermost range of the issuing thread that means something */
    uint64_t backward;     /* model of the backward range that it is in; 0 none */
    uint32_t micro; /* micro-steps, else backward passes (of that model), begun in this iteration */
    uint64_t model; /* that the innermost range naming one names; 0 none */
    uint64_t text;  /* string id of the iteration's range; 0 where steps end iterations */
};

enum loop_event { LOOP_NOTHING, LOOP_ENDS, LOOP_FAILED };

/* A RANGE record. LOOP_ENDS: the thread's iteration is over; its loop still shows it, until
 * loop_end. LOOP_FAILED: memory is short. */
enum loop_event loop_feed(const struct event *event);
void loop_end(struct thread *thread);

struct loop_place loop_place_of(const struct thread *thread);
/* String id of the thread's innermost range, 0 none. */
uint64_t thread_phase(const struct thread *thread);

#endif
