/* thread.h: what the shim keeps per thread.
 *
 * In thread-local storage of the initial-exec model, so that it can be used in constructors, in
 * signal handlers and while the thread ends; small, because that storage is scarce. The caches are
 * mapped when the thread makes its first record. */
#ifndef DDPCHECK_THREAD_H
#define DDPCHECK_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/shim/comms.h"
#include "interpose/shim/shim.h"

enum {
    BUFFER_CACHE = 512, /* pointers whose allocation was recorded */
    RANGE_CACHE = 64,   /* allocations that CUDA was queried for last */
    STACK_STEPS = 2048, /* between frames of stacks that were unwound */
    STACK_IDS = 1024,   /* stacks that were unwound */
    STACK_FRAMES = 32,
    PAGE_CACHE = 128,    /* code pages that lie in a module that was recorded */
    PYTHON_CACHE = 2048, /* Python stacks that were recorded */
    POINTERS_MAX = 160,  /* of one launch: the longest lists of PyTorch, and a few more */
    GROUP_INITS = 64,    /* communicators created in one ncclGroup of one thread */
    HASH_JOBS = 512,     /* operations of one ncclGroup whose payloads are hashed */
    TIMED_LAUNCHES = 15  /* of one ncclGroup that are timed exactly */
};

/* From a frame to its caller's: where on the stack the two return addresses lie. With what lies
 * there now these lead through a stack that was unwound before, and nothing has to be unwound. */
struct stack_step {
    uint64_t address; /* the return address at `slot` */
    const uint64_t *slot;
    const uint64_t *caller; /* NULL: the outermost frame */
};

struct stack_known {
    uint64_t hash, id;
};

/* The allocation around a pointer, valid in one epoch of buffers.c. */
struct buffer_entry {
    uint64_t pointer, epoch, base, bytes;
    int32_t device;
    uint16_t type; /* enum memory_type */
    bool recorded;
};

/* The memory that a launch is given. */
struct launch_pointers {
    struct {
        uint64_t address, base;
        bool written, inferred;
    } found[POINTERS_MAX];
    int count, guesses;
    uint32_t extent; /* bytes touched from each inferred one on; 0 not known */
    bool cut;        /* there were more */
    bool elsewhere;  /* some of it is another device's */
};

/* What is to be hashed of one operation (hashing.h). */
struct hash_job {
    uint64_t comm, number, serial;
    uint64_t send, send_bytes, recv, recv_bytes; /* 0 bytes: not hashed */
    uint64_t stream;
    int32_t rank, device;
    uint16_t api;
    uint8_t datatype;
    bool send_after, recv_after;
};

/* Launches of operations that one call makes (timing.h). */
struct timed_launch {
    uint64_t number;
    uint32_t slot;
    int32_t device;
};
struct timed_launches {
    uint32_t count;
    struct timed_launch launch[TIMED_LAUNCHES];
};

struct thread_caches {
    struct buffer_entry buffer[BUFFER_CACHE];
    struct buffer_entry range[RANGE_CACHE]; /* by age */
    uint32_t ranges;                        /* queried so far */
    struct stack_step stack_step[STACK_STEPS];
    struct stack_known stack_known[STACK_IDS];
    uint64_t program_stack; /* the last one with Python frames; 0: none yet */
    uint32_t stack_debt;    /* stacks.c: of new stacks of copies and kernels */
    uint64_t page[PAGE_CACHE];
    uint64_t python[PYTHON_CACHE][2];      /* key of the frames, id of the stack */
    struct pending_init init[GROUP_INITS]; /* of the open group */
    uint32_t inits;
    struct hash_job hash_job[HASH_JOBS]; /* of the open group, or the one operation */
    uint32_t hash_jobs;
    struct launch_pointers launch; /* of the launch under way */
    struct timed_launches timed;   /* of the operations under way */
};

/* The query that the thread's last calls were (poll.h). */
struct poll {
    const void *of; /* the stream or event */
    uint64_t enter; /* serial of the loop's ENTER record, 0 none */
    uint32_t times; /* how often it was not ready; no more are counted than make a loop */
    uint16_t api;   /* enum api */
    uint16_t loop;  /* that of the loop */
};

struct shim_thread {
    volatile uintptr_t inside; /* in a recorded call, whose wrapper has its frame there: calls that
                                  it makes pass through (thread_is_inside) */
    uintptr_t inside_site;     /* where that wrapper returns to */
    uint32_t left;             /* recorded calls that did not return, and were not emitted yet */
    bool attached;
    bool in_callback;       /* of CUDA: no CUDA function may be called */
    uint8_t runtime;        /* enum runtime of the last call of the CUDA runtime */
    bool group_refused;     /* --guard refused a call of the open group */
    bool was_refused;       /* and the last collective */
    bool is_watchdog;       /* PyTorch's, which only checks what became of others' work */
    uint64_t timed;         /* what stands for the operations that the call under way launches */
    uint8_t device_queries; /* how often CUDA could not name the device */
    int32_t device;         /* current CUDA device, RECORD_NO_DEVICE if not known */
    int32_t context_device; /* for which the thread was seen to have a context */
    uint32_t id;            /* kernel thread id */
    uint32_t segments_seen; /* segments_ended() when there was no free segment */
    struct ring_writer *writer; /* NULL: records are counted as lost */
    struct thread_caches *caches;
    bool in_group_api; /* profiler.h: NCCL reported an ncclGroup of the program */
    uint64_t group;    /* serial of the outermost open ncclGroupStart */
    uint32_t group_depth, group_calls;
    struct poll poll;
    uint64_t group_slots[RING_SLOTS_MAX / 64]; /* progress slots that the open group launches on */
};

extern _Thread_local struct shim_thread thread_self __attribute__((tls_model("initial-exec")));

/* device_queries of threads that must not query CUDA. */
enum { NEVER_QUERY_CUDA = UINT8_MAX };

/* `inside` of threads whose calls are never recorded. */
#define THREAD_ALWAYS_INSIDE UINTPTR_MAX

/* A recorded call begins, whose wrapper has this frame: above the address of a frame lies where its
 * function returns to (x86-64 and AArch64). */
static inline void thread_enter(struct shim_thread *thread, const void *frame)
{
    thread->inside_site = ((const uintptr_t *)frame)[1];
    thread->inside = (uintptr_t)frame;
}

/* The rest of thread_is_inside: whether the frame of the recorded call is gone. */
bool thread_has_left(struct shim_thread *thread, const void *frame);

/* Whether the function whose frame this is was called by a recorded call; not if an exception, a
 * longjmp or the end of the thread has left that call. */
static inline bool thread_is_inside(struct shim_thread *thread, const void *frame)
{
    return thread->inside && !thread_has_left(thread, frame);
}

#endif
