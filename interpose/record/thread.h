/* thread.h: what the shim keeps per thread, and the thread's place in the ring file.
 *
 * In thread-local storage of the initial-exec model, so that it can be used in constructors, in
 * signal handlers and while the thread ends; small, because that storage is scarce. The caches are
 * mapped when the thread makes its first record. */
#ifndef DDPCHECK_THREAD_H
#define DDPCHECK_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/hash/hash_job.h"
#include "interpose/process/shim.h"

enum {
    BUFFER_CACHE = 512, /* pointers whose allocation was told */
    STACK_SETS = 32,
    STACK_WAYS = 4,
    STACK_FRAMES = 32,
    PAGE_CACHE = 128,   /* code pages that lie in a module that was told */
    PYTHON_CACHE = 512, /* Python stacks that were told */
    POINTERS_MAX = 24,  /* of one launch: four records */
    GROUP_INITS = 64,   /* communicators created in one ncclGroup of one thread */
    HASH_JOBS = 512     /* operations of one ncclGroup whose payloads are hashed */
};

/* A call stack and where on the stack its return addresses lie: if they are still there, it is
 * still the same stack, and nothing has to be unwound. */
struct stack_entry {
    uint64_t id;
    uint64_t site, place; /* the innermost return address and where it lies */
    uint32_t count;
    uint64_t address[STACK_FRAMES];
    const uint64_t *slot[STACK_FRAMES];
};

/* The allocation around a pointer, valid in one epoch of shim.buffer_epoch. */
struct buffer_entry {
    uint64_t pointer, epoch, base, bytes;
    int32_t device;
    uint16_t type; /* enum memory_type */
    bool told;
};

/* The memory that a launch is given. */
struct launch_pointers {
    struct {
        uint64_t address, base;
        bool written, inferred;
    } found[POINTERS_MAX];
    int count, guesses;
    bool cut;       /* there were more */
    bool elsewhere; /* some of it is another device's */
};

struct thread_caches {
    struct buffer_entry buffer[BUFFER_CACHE];
    struct stack_entry stack[STACK_SETS][STACK_WAYS];
    uint8_t stack_next[STACK_SETS];
    uint64_t page[PAGE_CACHE];
    uint64_t python[PYTHON_CACHE][2];      /* key of the frames, id of the stack */
    struct pending_init init[GROUP_INITS]; /* of the open group */
    uint32_t inits;
    struct hash_job hash_job[HASH_JOBS]; /* of the open group, or the one operation */
    uint32_t hash_jobs;
    struct launch_pointers launch; /* of the launch under way */
};

struct thread {
    volatile uint32_t inside; /* in a recorded call: calls that it makes pass through */
    bool attached;
    bool group_failed;            /* a call of the open group failed */
    uint8_t device_asked;         /* how often CUDA could not tell the device */
    int32_t device;               /* current CUDA device, RECORD_NO_DEVICE if not known */
    uint32_t id;                  /* kernel thread id */
    uint32_t segments_seen;       /* shim.segments_ended when no segment was to be had */
    struct ring_segment *segment; /* NULL: records are counted as lost */
    struct record *records[RING_KINDS];
    struct thread_caches *caches;
    bool in_group_api; /* profiler.h: NCCL told of an ncclGroup of the program */
    uint64_t group;    /* serial of the outermost open ncclGroupStart */
    uint32_t group_depth, group_calls;
    uint64_t group_slots[RING_SLOTS_MAX / 64]; /* progress slots that the open group launches on */
};

extern _Thread_local struct thread thread_self __attribute__((tls_model("initial-exec")));

/* Gives the calling thread its caches and, if one is to be had, a segment. Returns false if the
 * thread can't be recorded at all (it is ending, or memory is short). */
bool thread_attach(struct thread *thread);

/* Looks for a segment again if there was none the last time and one was given back since. */
void thread_retry(struct thread *thread);

/* In the child of a fork: what the parent's thread had is not the child's. */
void thread_forked(struct thread *thread);

/* Makes the key whose destructor gives segments back. Returns 0 or an errno value. */
int thread_start(void);

/* The thread's current CUDA device; CUDA is asked if nobody told and the program uses it. */
int32_t thread_device(struct thread *thread);

#endif
