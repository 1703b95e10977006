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
#include "analyzer/model/setups.h"
#include "lib/trace/signature.h"
#include "analyzer/model/site.h"
#include "analyzer/model/table.h"
#include "analyzer/model/work.h"

enum {
    THREAD_SETUPS_MAX = 64, /* communicators set up in one ncclGroup */
    GROUP_CALLS_MAX = 4096, /* calls of one ncclGroup that are compared as a group */
    THREADS_MAX = 4096,     /* kept of one process; the oldest that is in no call goes */
    MEMBER_ISSUERS_MAX = 4, /* threads that issue operations of one member */
    MEMBERS_MAX = 1 << 20,  /* a larger communicator is noise */
    NUMBER_MAX_BITS = 62    /* a larger operation number is noise */
};

/* One machine: its collector's ticks say up to when everything that happened there is known. */
struct host {
    char boot_id[40];
    uint64_t tick_ns;
    uint64_t round;            /* that it ticked in last: ticks.h */
    struct process *processes; /* linked by host_next */
    UT_hash_handle hh;
};

/* A call of setups.def that has not returned. */
struct setup {
    enum wait_kind kind;
    struct comm *comm;     /* of WAIT_SPLIT and WAIT_SHRINK the parent */
    struct member *member; /* that waits, on the parent if there is one; NULL if its rank is not
                              known */
    uint32_t ordinal;
    /* WAIT_SHRINK: how many ranks are left out, and the sum of string_id() of each. */
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
    void *states;
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
    uint64_t config; /* of its next collective: a string id, 0 none (notice_collective_config) */
    bool uses_nccl;
    bool has_ended;        /* notice_thread_end, and nothing since */
    uint64_t last_ns;      /* of its last record */
    uint32_t blocked_node; /* waits.c: 1 + its place in the wait graph while one exists, else 0 */
    struct thread *blocked_next, *blocked_prev; /* list of threads in a call */
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

/* The last call of a process that did not return success. */
struct failed_call {
    uint16_t api; /* 0: there is none */
    int32_t result;
    uint64_t position; /* `now` then */
};

/* The order of its work: order.h; timelines.h, graphs.h and dead_streams.h have parts of it. */
struct order_state {
    struct stream_state *streams;   /* table, without those that are gone and those in captures */
    struct stream_state **timeline; /* all, sorted by timeline */
    uint32_t timelines, timeline_capacity, gone_streams;
    uint64_t last_timeline;
    struct dead_stream *dead_streams; /* table, by handle */
    struct event_state *events;
    struct capture *captures; /* open ones */
    uint64_t last_capture;
    struct graph *graphs;                 /* by handle */
    struct host_function *host_functions; /* put on streams, not run yet */
    uint32_t host_function_count, host_function_capacity;
    uint64_t unknown;      /* of what was issued up to here the host may have seen anything done */
    uint64_t seen_version; /* host waits that returned */
    bool has_watched;      /* a stream's `watched` may be above its `seen` */
    uint64_t watched_unknown; /* `unknown` once the watched work is seen done */
};

/* The memory that it has, and had: memory.h, freed.h. */
struct memory_state {
    struct allocation *allocation; /* sorted by base, no two overlap */
    uint32_t allocations, allocation_capacity;
    struct freed *freed; /* sorted by base */
    uint32_t freed_count, freed_capacity;
    uint64_t wrote_anything; /* position of the last work that may have written anywhere:
                                unwritten.h */
};

/* How it ends, and what may be the reason: ends.h. */
struct end_signs {
    bool has_said_end;       /* notice_exit, or that it aborts */
    bool is_program;         /* notice_program */
    uint64_t lacks_function; /* a string id; 0 none */
    uint64_t last_operation; /* position of the last collective, send or receive */
    struct failed_call failed_call;
    bool has_exception; /* notice_exception */
    enum exception_how exception_how;
    uint64_t exception;                        /* string id of its type, 0 not known */
    char cxx_exception[ABORT_EXCEPTION_BYTES]; /* that string with C++'s type demangled; "" none */
    struct site raised;                        /* where it was raised, or exit() was called */
    uint64_t raised_at;                        /* `now` then */
    const struct thread *raised_by;            /* the thread then, or the one that called exit() */
};

/* Its records that are not in the trace. Of `bulk` and `control` the dropped ones were stored once,
 * and analysed then (notice_dropped). */
struct lost {
    uint64_t control, bulk, hashes;
    uint64_t dropped_control, dropped_bulk;
    uint64_t since_ns, until_ns; /* when the first loss was seen, and the last; 0 none */
    uint64_t jumps;              /* records whose serials do not follow those before */
};

/* What the rooms beside the model keep with a process, communicator or member (slots.def). */
struct process_slots {
#define PROCESS_SLOT(name, end) struct name *name;
#include "analyzer/slots.def"
};
struct comm_slots {
#define COMM_SLOT(name, end) struct name *name;
#include "analyzer/slots.def"
};
struct member_slots {
#define MEMBER_SLOT(name, end) struct name *name;
#include "analyzer/slots.def"
};

/* Its devices by their number, as far as it has used one: devices.h. */
struct devices {
    struct device_state *state;
    uint32_t count;
};

/* The newest operators that the process made, a ring: redops.h. */
struct redops {
    struct redop_made *ring;
    uint64_t made;
    uint32_t capacity;
};

/* How far the GPU is: progress.h. */
struct process_progress {
    struct slot_state *slots;
    uint64_t units; /* made so far, struct pending's */
};

/* Operations that the record in hand shows to be done: exact.h. */
struct passed_operations {
    struct passed *operation;
    uint32_t count, capacity;
    bool is_short;             /* memory was short for one */
    struct exact_times *exact; /* NULL: there are none */
};

/* What was launched on each device: issued.h. */
struct issued_by_device {
    struct issued *on_device;
    uint32_t devices;
};

/* Host functions that were launched and have not returned: callbacks.h. */
struct callbacks {
    struct callback *first;
    uint32_t count;
};

/* The training loop of its threads: iteration.h. */
struct process_loop {
    uint64_t iteration_name; /* DDPCHECK_ITERATION, a string id; 0 not set */
    struct thread *thread;   /* the last that began its first iteration */
    uint32_t threads;        /* that have iterations */
};

/* The members that the process is: own_members.h. */
struct own_members {
    struct member *last;
    struct member *table; /* by communicator: its first member of each */
    int first_rank;       /* of the first that it ever had */
    uint64_t first_order; /* the least struct comm's `order` of all that it ever had */
};

struct process {
    struct analyzer *analyzer;
    int index;
    void *states; /* of checks: states.h; the other owners have one as well */
    struct process_slots slot;
    struct process_info info;
    uint64_t offset_ns; /* record time + offset = realtime */
    struct host *host;
    struct process *host_next;
    uint64_t now;    /* position of the record in hand */
    uint64_t now_ns; /* of the record in hand */
    uint64_t gpu_ns; /* when its GPU was last seen to get on */
    struct thread *threads, *last_thread;
    struct interned *strings;
    struct order_state order;
    struct memory_state memory;
    struct devices devices;
    struct redops redops;
    struct process_progress progress;
    struct passed_operations passed;
    struct issued_by_device issued;
    struct callbacks callbacks;
    struct process_loop loop;
    struct member *members; /* linked by process_next: those that it destroyed come last */
    struct own_members own;
    uint32_t member_count; /* that it ever had */
    bool has_communicator; /* one of these exists, or did */
    struct member *top;    /* of its largest communicator, the oldest of these; NULL: has none */
    bool several_ranks;    /* holds several members of one communicator */
    bool ended;
    struct record end;
    enum end_class end_class;
    uint64_t end_ns, last_ns; /* of its own last record */
    uint64_t gave_up_ns;      /* when it was last judged by ticks_give_up; 0 never */
    bool stopped;             /* notice_stopped */
    struct end_signs ending;
    struct lost lost;
    bool hashes; /* payloads.h: its payloads are hashed */
};

/* A member's operations in one iteration of its process. */
struct lap {
    const struct thread *owner; /* loop_place.owner */
    uint64_t iteration;         /* loop_place.iteration, 0 none */
    uint64_t number;            /* that its name gives */
    uint32_t operations;
};

/* What a member launched last: operations.c, progress.c. */
struct launches {
    struct place last, previous;
    struct clock ahead_of_last; /* what was ahead of the last */
    struct place captured;      /* its last one that was captured into a graph */
    bool is_replay;             /* a graph launched the last */
    uint64_t group;             /* ncclGroup of the last, 0 none */
    uint64_t unit;              /* struct pending's, of the last */
    uint64_t stacks, calls;     /* a bit for each stack and each signature that it had */
    bool is_moved;              /* the last: a call that it made before, from another stack */
};

/* A call of the member that has returned and goes on. */
struct background {
    bool goes_on; /* there is one: a split, a shrink, a window, the end */
    struct setup setup;
    struct site site;
};

/* The call that aborted the communicator on the member. */
struct abort_call {
    struct site site; /* of the first such call */
    uint64_t done;    /* the member's `done` then */
    bool by_shrink;   /* ncclCommShrink with NCCL_SHRINK_ABORT */
    bool aside;       /* by a thread that issues nothing for it, as a watchdog */
};

/* What is left of operations that its window let go: window.h. */
struct condensed {
    uint64_t hash, next;
};

/* Its operations in the last iterations: lockstep.h. */
struct laps {
    struct lap lap[3]; /* this iteration's and the two before */
    uint64_t count;    /* iterations in which it issued operations */
};

struct member {
    void *states;
    struct member_slots slot;
    struct comm *comm;
    uint64_t comm_id; /* its communicator's, key of struct process's `own` */
    UT_hash_handle hh;
    struct member *own_next; /* another member of the communicator in this process */
    int rank, device;
    struct process *process;
    struct member *process_next, *process_prev;
    uint64_t gpu;
    uint64_t next;          /* number of its next collective */
    uint64_t started, done; /* collectives */
    uint64_t calls_p2p;
    uint32_t made[WAIT_KINDS]; /* calls of setups.def on it, by the kind that numbers them */
    bool exists;               /* the communicator was made on this rank */
    bool arrived;              /* called ncclCommInit*, or notice_member named it */
    bool initialising; /* of a nonblocking communicator: the call has returned, set-up goes on until
                          it exists */
    struct background background;
    uint32_t arrivals;   /* ncclCommInit* calls with its rank; more than one is DC109 */
    struct site arrival; /* of the first */
    bool suspended;      /* ncclCommSuspend returned, and ncclCommResume has not */
    bool leaving, aborted,
        destroyed; /* finalize or destroy was entered; abort was entered; destroy returned */
    int top_rank; /* its rank in the communicator that this one was split from, and that one, ... */
    struct abort_call abort;
    bool has_progress; /* the GPU reports how far it got */
    uint32_t creator;  /* kernel id of the thread that created it; 0 not known */
    struct thread *issuer[MEMBER_ISSUERS_MAX];
    uint32_t issuers;
    bool more_issuers;
    struct launches launches;
    struct signature last; /* its last operation */
    bool has_last;
    struct condensed condensed;
    struct laps laps;
};

enum { COMM_NAME_BYTES = 48 }; /* "INTER_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP" of Megatron */
struct comm {
    uint64_t id;
    UT_hash_handle hh;
    struct analyzer *analyzer;
    char name[COMM_NAME_BYTES];     /* that the program gave it; "": none */
    const struct process *named_by; /* whose name it is; only compared */
    bool shares_name;               /* with another communicator */
    bool is_numbered;               /* it was named by a number, as PyTorch 2.15 does */
    struct rankset job_ranks;       /* its ranks in the job; empty: not known */
    void *states;
    uint64_t order;     /* of creation */
    int nranks;         /* -1 not known */
    uint32_t ranks_max; /* where it is not: as many as the job has, 0 not known either */
    uint64_t parent;
    struct member **member; /* by rank */
    uint32_t members, capacity;
    uint32_t destroyed; /* members that destroyed it */
    struct comm_slots slot;
    bool counts_apart;    /* its members never agreed on which iteration they are in */
    bool initialising;    /* a member is, or was */
    enum wait_kind setup; /* WAIT_INIT or WAIT_GROW: how its ranks come together */
    uint64_t grow_ids;    /* how many growths of it have an id of ncclCommGetUniqueId */
    bool has_ended;       /* a member's process ended or left */
    bool has_empties;     /* a member made a call of no elements */
    uint64_t first_setup_ns;
    struct comm *next, *prev;
    bool is_watched; /* it is in analyzer->watched */
    bool is_revived; /* records of it came after it was forgotten (forgotten.h) */
    bool is_held;    /* forgotten.c: something still refers to it */
    /* Every member that is known has destroyed it: */
    bool is_gone, is_queued; /* queued: in the list by gone_next */
    uint64_t gone_round;     /* analyzer->judgements then */
    struct comm *gone_next;  /* in the order of their destruction; of forgotten ones, the next */
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
    uint64_t config;             /* a string id; 0: none */
    bool is_unordered; /* a replay: the program orders it after no other of the member's */
    const struct window_answer *match; /* collectives: how it compares with its peers' (window.h) */
    const struct channel_pair *pair;   /* sends and receives: with its counterpart's (channel.h) */
};

#endif
