/* shim.h: libddpcheck.so's only global state, and how it wakes.
 *
 * The shim sleeps until the process's first NCCL call (calls.def says which functions those are):
 * no thread, no file, no output, no look at the environment. It then makes the ring file, says who
 * the process is, starts a collector if the trace directory has none, and records. If anything of
 * that fails it says so in one line on stderr and stays off: the job never notices. */
#ifndef DDPCHECK_SHIM_H
#define DDPCHECK_SHIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "interpose/calls/comms.h"
#include "interpose/calls/handles.h"
#include "interpose/calls/kernels.h"
#include "interpose/calls/known.h"
#include "lib/trace/ring.h"

#define EXPORT __attribute__((visibility("default")))

enum shim_state {
    SHIM_DORMANT,  /* no NCCL call so far, or a forked child that made none */
    SHIM_STARTING, /* one thread is in shim_wake */
    SHIM_ACTIVE,
    SHIM_OFF /* switched off, or could not start */
};

enum stack_mode { STACKS_OFF, STACKS_NCCL, STACKS_ALL };

struct shim {
    _Atomic uint32_t state; /* enum shim_state */
    struct ring_file *file; /* valid while ACTIVE */
    int file_fd;
    _Atomic(struct ring_segment *) segment[RING_SEGMENTS_MAX];
    _Atomic uint32_t
        growing; /* lock of the file's length; held only while a thread gets a segment */
    _Atomic uint32_t
        segments_ended; /* how often a segment was given back: worth another look for a free one */
    _Atomic uint32_t cuda_used; /* the program uses CUDA, so it may be asked. Before that, asking
                                   would initialise it, and the program could not fork any more */
    enum stack_mode stacks;
    uint32_t selection;            /* enum selection: which kernels and copies are told */
    bool hashing;                  /* payload hashes were asked for (hashing.h) */
    char directory[4096];          /* the trace directory's absolute path */
    _Atomic uint64_t buffer_epoch; /* goes up with every free: cached pointers are stale */
    _Atomic int captures;          /* stream captures that are open */
    _Atomic uint32_t asked;        /* monitor_start was called */
    _Atomic uint32_t
        nccl_called; /* a wrapper of NCCL was called, so the wrappers see the process's NCCL */
    _Atomic uint32_t lacks;     /* LACKS_*: what this process's records can't say */
    _Atomic uint32_t profiled;  /* NCCL tells us of its work (profiler.h) */
    _Atomic uint32_t init_alls; /* ncclCommInitAll calls so far */
    struct comm_table comms;
    struct known known_strings, known_stacks, known_buffers;
    struct known_modules modules;
    struct kernel_table kernels;
    _Atomic uint32_t kernel_epoch; /* goes up when device code is unloaded */
    struct handles streams;        /* whose flags were told */
    struct handles graphs;         /* graph instances whose making was seen */
};

extern struct shim shim;

/* Starts recording. Called with the thread's in-shim flag set; the first caller works, the others
 * wait for it. Returns true if the shim is active. */
bool shim_wake(void);

/* What can go wrong; each is said once per process. */
enum problem {
    PROBLEM_START,
    PROBLEM_DIRECTORY,
    PROBLEM_COLLECTOR,
    PROBLEM_MISSING_FUNCTION,
    PROBLEM_COMMS_FULL,
    PROBLEM_P2P_FULL,
    PROBLEM_HASHING
};

/* Writes "ddpcheck: ..." as one line to stderr, the first time for each problem. */
void shim_say(enum problem problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
