/* model.h: what the analyzer knows about processes, threads, communicators and their members.
 *
 * Plain state. engine.c owns it; process.c, comm.c, order.c, progress.c, operations.c and channel.c
 * keep it up to date; checks only read it. All times are realtime, nanoseconds. */
#ifndef DDPCHECK_MODEL_H
#define DDPCHECK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/analyzer.h"
#include "analyzer/model/clock.h"
#include "analyzer/model/iteration.h"
#include "analyzer/model/signature.h"
#include "analyzer/model/table.h"

enum {
    THREAD_SETUPS_MAX = 64, /* communicators set up in one ncclGroup */
    GROUP_CALLS_MAX = 4096, /* calls of one ncclGroup that are compared as a group */
    THREADS_MAX = 4096,     /* kept of one process; the oldest that is in no call goes */
    MEMBER_ISSUERS_MAX = 4, /* threads that issue operations of one member */
    MEMBERS_MAX = 1 << 20,  /* a larger communicator is noise */
    NUMBER_MAX_BITS = 62    /* a larger operation number is noise */
};

/* Where a call was made. */
struct site {
    struct process *process;
    uint64_t stack;
    uint64_t phase; /* string id of the innermost NVTX range, 0 none */
    uint64_t time_ns;
    bool stack_is_address;
};

/* One machine: its collector's ticks say up to when everything that happened there is known. */
struct host {
    char boot_id[40];
    uint64_t tick_ns;
    uint64_t round;            /* that it ticked in last: ticks.h */
    struct process *processes; /* linked by host_next */
    UT_hash_handle hh;
};

/* A call that makes or ends a communicator and has not returned. */
enum setup_kind { SETUP_INIT, SETUP_SPLIT, SETUP_SHRINK, SETUP_WINDOW, SETUP_LEAVE };
struct setup {
    enum setup_kind kind;
    struct comm *comm;     /* SETUP_SPLIT, SETUP_SHRINK: the parent */
    struct member *member; /* that waits, on the parent if there is one; NULL if its rank is not
                              known */
    uint32_t ordinal;
    /* SETUP_SHRINK: how many ranks are left out, and the sum of string_id() of each. */
    uint32_t excluded_count;
    uint64_t excluded;
};

/* Where the record in hand was put. */
struct work {
    struct stream_state *stream; /* NULL: on none, or captured into a graph that is not known */
    struct place place;
};

struct thread {
    uint32_t tid;
    UT_hash_handle hh;
    struct process *process;
    void *states; /* of checks: states.h; the other owners have one as well */
    bool in_call; /* `enter` has no LEAVE yet */
    struct record enter;
    struct site enter_site;
    struct clock waits_for; /* while in_call: what must be done before the call can return */
    struct work work;       /* of its last record that put work on a stream */
    struct setup *setup;
    uint32_t setups, setup_capacity;
    uint32_t group_depth;
    struct operation *group; /* calls of the open ncclGroup, not yet issued */
    uint32_t group_calls, group_capacity;
    uint64_t group_id;
    bool group_cut; /* the group is too large to be compared as one */
    /* NVTX's, outermost first; of `ranges` the first THREAD_RANGES_MAX are kept. */
    struct open_range *range;
    uint32_t ranges, range_capacity;
    struct loop loop;
    bool uses_nccl;
    bool has_ended;        /* notice_thread_end, and nothing since */
    uint64_t last_ns;      /* of its last record */
    uint32_t blocked_node; /* waits.c: 1 + its place in the wait graph while one exists, else 0 */
    struct thread *blocked_next, *blocked_prev; /* list of threads in a call */
};

/* What a slot said, and when. */
struct slot_time {
    uint64_t started, done, time_ns;
};
enum { SLOT_TIMES = 256 };

struct slot_state {
    uint64_t key; /* the record's slot */
    UT_hash_handle hh;
    uint64_t started, done;
    uint64_t issued;  /* launch of its last operation */
    uint64_t idle_ns; /* when it was last read and nothing ran; 0 not known */
    /* Ring: what it said of operations whose own records had not come yet; NULL: it never did. */
    struct slot_time *ahead;
    uint32_t aheads;
    struct stream_state *stream; /* NULL: gone */
};

/* Kernels that were launched, and their threads. */
struct issued {
    uint64_t kernels, threads;
};

/* An operation that was issued and that its stream has not passed yet. */
struct pending {
    uint64_t launch, number;
    struct slot_state
        *slot; /* NULL: without progress; done when a host wait that covers it has returned */
    struct member *member;
    struct channel *channel; /* point to point; NULL for a collective */
    struct signature signature;
    struct site site;
    bool receives;
    uint64_t stream;           /* the handle */
    uint64_t group;            /* ncclGroup that it is of, 0 none */
    uint64_t bytes, iteration; /* struct passed's */
    struct issued before_it;   /* likewise */
    uint64_t started_ns;       /* 0 not known */
    struct place place;
    /* What must be done before it can start, beside what is ahead of it on its own stream: by
     * events, default streams, and the launch of the member before (a communicator's operations run
     * one after the other whatever their streams are: NCCL, ncclLaunchPrepare). */
    struct clock before;
    struct place serial; /* position 0: none */
    uint64_t unit; /* calls of one group and member are one; numbered as they were first used */
};

/* An operation that its stream has passed. */
struct passed {
    struct member *member;
    struct site site;
    uint64_t number;
    uint64_t issued_ns, started_ns, done_ns; /* by the clock of its host */
    uint64_t bytes;                          /* as the call counts them */
    uint64_t iteration;                      /* of the training loop, + 1; 0 not known */
    struct issued before_it; /* on its device, up to the operation before it there */
    uint16_t api;
    int32_t peer; /* of a message: rank of the communicator; else -1 */
};

/* Handles 0 and 1 are the legacy default stream of a device, 2 the default stream of a thread on a
 * device. */
struct stream_key {
    uint64_t handle;
    uint32_t device, thread; /* of the default streams, else 0 */
};
/* A timeline (order.h). */
struct stream_state {
    struct stream_key key;
    UT_hash_handle hh;
    uint64_t timeline;
    uint64_t position; /* of the last work on it */
    uint64_t seen;     /* the host has seen all up to here done */
    uint64_t watched;  /* PyTorch's watchdog has (order.h); not always above `seen` */
    int device;
    bool known, blocking; /* creation seen; ordered with the legacy default stream */
    bool gone;            /* destroyed; what it still does goes on */
    bool is_captured;     /* the counterpart of a stream in a capture */
    uint64_t born;        /* position of its creation; 0 not seen */
    uint64_t joined; /* position of its last work that was joined with the legacy default stream, or
                        the default's with all */
    struct capture *capture; /* that it is in; NULL */
    struct clock ahead;      /* of its next work, but for its own earlier work */
    struct pending *queue;   /* ring (progress.h) */
    uint32_t head, count, capacity, counted_started;
    uint64_t passed_ns; /* when its last operation was done */
    struct clock
        reported; /* what `before` of its operations names: later ones need not name it again */
};

struct event_state {
    uint64_t handle;
    UT_hash_handle hh;
    int device;       /* that was current when it was made; -1 if that was not seen */
    uint64_t capture; /* id of the capture that it was recorded in last; 0 none */
    bool foreign;     /* of another process, or shared with one: it may have recorded it */
    struct clock clock;
};

struct allocation {
    uint64_t base, bytes;
    int device;          /* -1 host */
    uint32_t type;       /* enum memory_type */
    bool stream_ordered; /* of cudaMallocAsync, cudaMallocFromPoolAsync */
    bool is_mapping;     /* of cuMemMap: others beside it may belong to it */
    bool took_over; /* in the place of one whose end was not seen: the next that is freed here may
                       be that one */
    struct place birth; /* stream_ordered: where it was made on its stream; else only when; position
                           0: not seen */
    struct site site;   /* of its birth */
    struct written *written; /* unwritten.h: what is known to be written; NULL: not watched */
};

/* An allocation that was freed, until its addresses are given out again. */
struct freed {
    uint64_t base, bytes;
    struct site site;
    uint16_t api;
};

struct interned {
    uint64_t id;
    UT_hash_handle hh;
    uint32_t bytes;
    char *text;
    bool is_range; /* `meaning` is known */
    struct range_meaning meaning;
};

enum end_class {
    END_CLASS_ALIVE,
    END_CLASS_PENDING,    /* ended a moment ago; what follows may show it to be a consequence */
    END_CLASS_CAUSE,      /* ended wrongly, and first */
    END_CLASS_CLEAN,      /* exit status 0 */
    END_CLASS_CONSEQUENCE /* ended because another one did, or killed with the whole job */
};

/* The process that is a rank of the job, by its launcher; the newest, where it was started again.
 */
struct rank_process {
    struct {
        int32_t rank, world_size;
    } key;
    struct process *process;
    UT_hash_handle hh;
};

struct process {
    int index;
    void *states;
    struct process_info info;
    uint64_t offset_ns; /* record time + offset = realtime */
    struct host *host;
    struct process *host_next;
    struct thread *threads, *last_thread;
    struct stream_state *streams;   /* table, without those that are gone and those in captures */
    struct stream_state **timeline; /* all, sorted by timeline */
    uint32_t timelines, timeline_capacity, gone_streams;
    struct device_state *devices; /* by number, as far as the process has used one: devices.h */
    uint32_t device_capacity;
    struct event_state *events;
    struct capture *captures;             /* open ones: graphs.h */
    struct graph *graphs;                 /* by handle */
    struct host_function *host_functions; /* put on streams, not run yet: order.c */
    uint32_t host_function_count, host_function_capacity;
    uint64_t now; /* position of the record in hand */
    uint64_t last_timeline, last_capture;
    uint64_t unknown;      /* of what was issued up to here the host may have seen anything done */
    uint64_t seen_version; /* host waits that returned */
    bool has_watched;      /* a stream's `watched` may be above its `seen` */
    uint64_t watched_unknown; /* will be `unknown`, likewise */
    struct slot_state *slots;
    struct interned *strings;
    uint64_t iteration_name;       /* DDPCHECK_ITERATION, a string id; 0 not set */
    struct thread *loop_thread;    /* the last that began its first iteration */
    uint32_t loops;                /* threads that have iterations */
    struct allocation *allocation; /* sorted by base, no two overlap */
    uint32_t allocations, allocation_capacity;
    struct freed *freed; /* sorted by base: freed.h */
    uint32_t freed_count, freed_capacity;
    uint64_t
        wrote_anything; /* position of the last work that may have written anywhere: unwritten.h */
    struct dead_stream *dead_streams; /* table, by handle: dead_streams.h */
    struct record launch;             /* the last LAUNCH, for records with RECORD_FLAG_MORE */
    struct redop_made *redop;         /* redops.h: ring */
    uint64_t redops_made;
    uint32_t redop_capacity;
    struct member *members; /* linked by process_next */
    uint32_t member_count;
    struct member *top; /* of its largest communicator, the oldest of these; NULL: has none */
    bool several_ranks; /* holds several members of one communicator */
    bool ended;
    struct record end;
    enum end_class end_class;
    uint64_t end_ns, last_ns; /* of its own last record */
    bool stopped;             /* notice_stopped */
    bool has_exception;       /* notice_exception */
    enum exception_how exception_how;
    uint64_t exception;             /* string id of its type, 0 not known */
    struct site raised;             /* where it was raised, or exit() was called */
    uint64_t raised_at;             /* `now` then */
    uint64_t last_operation;        /* position of the last collective, send or receive */
    const struct thread *raised_by; /* likewise the thread, or that which called exit() */
    struct callback *callbacks;     /* callbacks.h */
    uint32_t callback_count;
    uint64_t units;        /* made so far, struct pending's */
    uint64_t gpu_ns;       /* when its GPU was last seen to get on */
    uint64_t now_ns;       /* of the record in hand */
    struct passed *passed; /* operations that this record shows to be done */
    uint32_t passed_count, passed_capacity;
    bool passed_short;         /* memory was short for one */
    struct exact_times *exact; /* exact.h; NULL: there are none */
    struct issued *issued;     /* by device: issued.h */
    uint32_t issued_devices;
    uint64_t lost_control, lost_bulk;
    uint64_t jumps;                        /* records whose serials do not follow those before */
    uint64_t lost_since_ns, lost_until_ns; /* when the first loss was seen, and the last; 0 none */
    /* Of lost_bulk and lost_control: stored once, and analysed then (notice_dropped). */
    uint64_t dropped_bulk, dropped_control;
    bool hashes; /* payloads.h: its payloads are hashed */
    uint64_t lost_hashes;
    struct hazards *hazards; /* hazards.h; NULL until something touches memory */
};

/* A member's operations in one iteration of its process. */
struct lap {
    const struct thread *owner; /* loop_place.owner */
    uint64_t iteration;         /* loop_place.iteration, 0 none */
    uint64_t number;            /* that its name gives */
    uint32_t operations;
};

struct member {
    void *states;
    struct comm *comm;
    int rank, device;
    struct process *process;
    struct member *process_next;
    uint64_t gpu;
    uint64_t next;          /* number of its next collective */
    uint64_t started, done; /* collectives */
    uint64_t calls_p2p;
    uint32_t splits;   /* ncclCommSplit and ncclCommShrink calls on this communicator */
    uint32_t windows;  /* ncclCommWindowRegister calls on it */
    bool exists;       /* the communicator was made on this rank */
    bool arrived;      /* called ncclCommInit*, or notice_member named it */
    bool initialising; /* of a nonblocking communicator: the call has returned, set-up goes on until
                          it exists */
    /* Likewise another call that has returned while it goes on in the background: a split, a
     * shrink, a window, the end. */
    bool in_background;
    struct setup background;
    struct site background_site;
    uint32_t arrivals;   /* ncclCommInit* calls with its rank; more than one is DC109 */
    struct site arrival; /* of the first */
    bool leaving, aborted,
        destroyed; /* finalize or destroy was entered; abort likewise; destroy returned */
    int top_rank; /* its rank in the communicator that this one was split from, and that one, ... */
    struct site aborted_at; /* where it was aborted first */
    uint64_t done_at_abort; /* `done` then */
    bool was_shrunk;        /* by ncclCommShrink with NCCL_SHRINK_ABORT */
    bool has_progress;      /* the GPU reports how far it got */
    uint32_t creator;       /* kernel id of the thread that created it; 0 not known */
    struct thread *issuer[MEMBER_ISSUERS_MAX];
    uint32_t issuers;
    bool more_issuers;
    struct place last_launch, launch_before; /* its last launch, and the one before that */
    struct clock before_last;                /* what was ahead of last_launch */
    struct place last_captured;              /* its last one that was captured into a graph */
    uint64_t last_group;                     /* ncclGroup of last_launch, 0 none */
    uint64_t last_unit;                      /* struct pending's, of last_launch */
    struct empties *empties;                 /* empties.h; NULL until the first */
    struct signature last;                   /* its last operation */
    bool has_last;
    uint64_t condensed_hash, condensed_next; /* window.h */
    struct lap lap[3];                       /* lockstep.h: this iteration's and the two before */
    uint64_t laps;                           /* iterations in which it issued operations */
};

enum { COMM_NAME_BYTES = 24 };
struct comm {
    uint64_t id;
    UT_hash_handle hh;
    char name[COMM_NAME_BYTES]; /* that the program gave it; "": none */
    bool shares_name;           /* with another communicator */
    struct rankset job_ranks;   /* its ranks in the job; empty: not known */
    void *states;
    uint32_t order;     /* of creation */
    int nranks;         /* -1 not known */
    uint32_t ranks_max; /* where it is not: as many as the job has, 0 not known either */
    uint64_t parent;
    struct member **member; /* by rank */
    uint32_t members, capacity;
    uint32_t destroyed; /* members that destroyed it */
    struct window *window;
    struct lockstep *lockstep; /* lockstep.h; NULL before the first operation */
    bool counts_apart;         /* its members never agreed on which iteration they are in */
    struct loop_divergence *loop_divergence; /* checks/loop_report.c: where its members were in
                                different places of their loops */
    struct divergence *divergence; /* checks/different_operations.c: where its members part; NULL
                                      while they agree */
    struct payloads *payloads;     /* payloads.h; NULL until one is hashed */
    bool initialising;             /* a member is, or was */
    bool has_ended;                /* a member's process ended or left */
    bool has_empties;              /* a member made a call of no elements */
    uint64_t first_setup_ns;
    struct comm *next;
};

/* A collective, send or receive as it is issued. */
struct operation {
    struct process *process;
    struct thread *thread;
    struct member *member;
    struct record record;
    struct signature signature;
    struct site site;
    struct loop_place loop;      /* in the training loop */
    struct stream_state *stream; /* captured: in the capture (order.h); NULL if that is not known */
    struct place place;          /* calls of one ncclGroup have the same position */
    const struct window_answer *match; /* collectives: how it compares with its peers' (window.h) */
    const struct channel_pair *pair;   /* sends and receives: with its counterpart's (channel.h) */
};

#endif
