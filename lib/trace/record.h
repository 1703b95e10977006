/* record.h: what the shim writes for each call that it sees, and all that anyone downstream
 * ever learns about it.
 *
 * A record is the unit of the whole program: the shim appends records to rings (ring.h), the
 * collector stores each as one row (store.h) and feeds it to the analyzer (analyzer.h), and an
 * offline reader turns the row back into the same record. Importers write records as well.
 * Nothing here may change its size or meaning without RECORD_VERSION going up.
 *
 * A call that can block, and every NCCL call, gives two records: ENTER before the real function
 * runs and LEAVE after it (LEAVE carries the result and, in leave.enter, the serial of its ENTER).
 * Everything else gives one POINT record after the real function returned.
 *
 * This header is used inside the user's process: it needs libc alone. */
#ifndef DDPCHECK_RECORD_H
#define DDPCHECK_RECORD_H

#include <stdint.h>

enum { RECORD_VERSION = 2, RECORD_BYTES = 128 };

enum api {
    API_NONE = 0,
#define API(number, name, class) API_##name = number,
#include "lib/trace/apis.def"
#undef API
    API_COUNT = 320
};

enum api_class {
    CLASS_NONE,
    CLASS_COLLECTIVE,
    CLASS_P2P,
    CLASS_GROUP,
    CLASS_COMM,
    CLASS_REDOP,
    CLASS_QUERY,
    CLASS_WAIT,
    CLASS_STREAM,
    CLASS_EVENT,
    CLASS_MEMORY,
    CLASS_DEVICE,
    CLASS_COPY,
    CLASS_LAUNCH,
    CLASS_GRAPH,
    CLASS_RANGE,
    CLASS_NOTICE
};

enum record_phase { RECORD_POINT, RECORD_ENTER, RECORD_LEAVE };

/* ncclDataType_t's values (nccl.h 2.28); numbers are NCCL's own. */
enum datatype {
    TYPE_INT8,
    TYPE_UINT8,
    TYPE_INT32,
    TYPE_UINT32,
    TYPE_INT64,
    TYPE_UINT64,
    TYPE_FLOAT16,
    TYPE_FLOAT32,
    TYPE_FLOAT64,
    TYPE_BFLOAT16,
    TYPE_FLOAT8E4M3,
    TYPE_FLOAT8E5M2,
    TYPE_COUNT,
    TYPE_NONE = 255
};

/* ncclRedOp_t's values; every handle of ncclRedOpCreatePreMulSum is REDOP_PREMULSUM with its
 * scalar in op.scalar, because NCCL lets the handle itself differ between ranks. */
enum redop {
    REDOP_SUM,
    REDOP_PROD,
    REDOP_MAX,
    REDOP_MIN,
    REDOP_AVG,
    REDOP_PREMULSUM,
    REDOP_UNKNOWN,
    REDOP_NONE = 255
};

enum memory_type {
    MEMORY_UNKNOWN,
    MEMORY_HOST_PAGEABLE,
    MEMORY_HOST_PINNED,
    MEMORY_DEVICE,
    MEMORY_MANAGED,
    MEMORY_HOST_SHARED,  /* pageable, but the GPU reaches it by itself (HMM, ATS:
                            cudaDevAttrPageableMemoryAccess) */
    MEMORY_DEVICE_MAPPED /* of a pool or of cuMemMap: peer access does not show who reaches it, nor
                            a range how far it goes */
};

enum { RECORD_NO_DEVICE = -1, RECORD_NO_RANK = -1, RECORD_NO_SLOT = 0xffffffffu };

/* How a process ended (payload end). */
enum end_how {
    END_EXIT,   /* value is the exit status */
    END_SIGNAL, /* value is the signal */
    END_UNKNOWN /* it is gone; nobody could say how */
};

/* What kind of thing a process is in, as its stacks show (payload position). */
enum place_kind {
    PLACE_ELSEWHERE, /* neither of the below: a file, a lock, its own code */
    PLACE_OPERATION, /* a collective, a send or a receive */
    PLACE_WAIT,      /* a wait for the GPU: behind an operation, or behind other work */
    PLACE_SETUP,     /* the making or the end of communicators, a rendezvous */
    PLACE_LAUNCHER,  /* it waits for ranks that it has started */
    PLACE_STOPPED,   /* by a signal, or a debugger */
    PLACE_GONE       /* its launcher had started it, and there is no such process */
};
enum {
    POSITION_MOVES = 1 << 0, /* it was elsewhere a moment before */
    POSITION_WORKS = 1 << 1  /* it ran, or read and wrote, while it was watched */
};

/* What ran beside the operations that are matched with their peers' (payload activity). */
enum activity_kind {
    ACTIVITY_COMPUTE,
    ACTIVITY_COMMUNICATION /* an operation whose peers or kind are not known */
};

struct record {
    uint64_t time_ns; /* CLOCK_MONOTONIC of the producer's host */
    uint64_t serial;  /* order of the process's records over all its threads, from 1; collector's
                         notices: 0 */
    uint16_t api;     /* enum api */
    uint8_t phase;    /* enum record_phase */
    uint8_t reserved; /* 0 */
    uint32_t thread;  /* kernel thread id; 0 for the collector's notices */
    int32_t result;   /* LEAVE, POINT: what the real function returned; ENTER of a one-sided call:
                         which signal, sigIdx | ctx << 16 */
    int16_t device;   /* the thread's current CUDA device, RECORD_NO_DEVICE if not known */
    uint16_t flags;   /* RECORD_FLAG_* */
    uint64_t stack;   /* id of a notice_stack or notice_python_stack, or the caller's return address
                         with   RECORD_FLAG_ADDRESS; 0 none */
    uint64_t stream; /* the CUDA stream handle the call was given; 0 is the legacy default stream */
    union {
        uint64_t word[10];
        struct {            /* LEAVE of any class: the fields its ENTER could not know yet follow */
            uint64_t enter; /* serial of the ENTER record */
            uint64_t comm;  /* communicator, as far as known by now */
            uint64_t handle; /* ncclComm_t, ncclRedOp_t, ... that was created */
            uint64_t text;   /* NCCL's calls that failed: string id of its last error; 0 none */
            /* COLLECTIVE, P2P: kernels that were launched on the member's device since the LEAVE
             * of the operation before on it, and their threads. 0: none, or not known, as from
             * the first launch of a graph on. */
            uint64_t kernels, threads;
        } leave;
        struct {             /* COLLECTIVE, P2P */
            uint64_t comm;   /* cluster-wide id */
            uint64_t number; /* COLLECTIVE: 0,1,2,.. per member in issue order; one of no elements,
                              * which NCCL drops, has the number of the next. P2P: 0,1,2,.. per
                              * (member, peer, direction) */
            uint64_t sendbuff; /* address, 0 for NULL or not used */
            uint64_t recvbuff; /* PutSignal: offset in the peer's window */
            uint64_t count;    /* elements, as given to the call; WaitSignal: signals */
            uint8_t datatype;  /* enum datatype */
            uint8_t redop;     /* enum redop */
            uint16_t flags;    /* RECORD_OP_* */
            int32_t root;      /* root or peer; -1 none */
            uint64_t scalar;   /* bits of PreMulSum's scalar; REDOP_UNKNOWN: the handle as given;
                           PutSignal: the window's handle; else 0 */
            uint64_t group;  /* serial of the outermost ncclGroupStart's record, 0 outside groups */
            uint32_t slot;   /* progress slot, RECORD_NO_SLOT without progress */
            int32_t rank;    /* the member's rank in comm */
            uint64_t launch; /* the slot's started/done reach this when the op has started/is done;
                                from 1 */
        } op;
        struct {            /* GROUP */
            uint64_t group; /* serial of the outermost ncclGroupStart */
            uint32_t depth; /* 1 = outermost */
            uint32_t calls; /* End: NCCL calls in the group */
        } group;
        struct {             /* COMM (ENTER), notice_member */
            uint64_t comm;   /* cluster-wide id; 0 not known (yet) */
            uint64_t parent; /* Split, Shrink, Grow of an old rank */
            uint64_t handle; /* ncclComm_t in this process */
            int32_t nranks;  /* -1 not known yet */
            int32_t rank;    /* -1 not known yet */
            int32_t device;  /* CUDA device of the member */
            int32_t color;   /* Split */
            int32_t key;     /* Split */
            uint32_t
                ordinal;    /* Split, Shrink, Grow: which of its kind on the parent; InitAll: in the
                                 process; InitRank*: unique ids given */
            uint64_t gpu;   /* hash of the GPU's identity (host boot id and PCI bus id, or UUID); 0
                               not known */
            uint32_t flags; /* RECORD_COMM_* */
            uint32_t reserved;
            uint64_t pointer; /* Register, WindowRegister: buffer; Shrink: hash of the set of
                                 excluded ranks */
            uint64_t bytes; /* Register, WindowRegister: size of the buffer; Shrink: how many ranks
                             are excluded; GetUniqueId: how often the communicator grew before */
        } comm;
        struct { /* REDOP */
            uint64_t comm, handle, scalar;
            uint8_t datatype;
        } redop;
        struct { /* WAIT: fields that the call does not have are 0 */
            uint64_t event;
            uint64_t dst, src, bytes;
            uint64_t kind; /* cudaMemcpyKind */
            uint64_t dst_pitch, src_pitch,
                height; /* 2D: `height` rows of bytes / height bytes; height 0: one row */
        } wait;
        struct { /* STREAM, EVENT */
            uint64_t event;
            uint64_t flags;
        } event;
        struct { /* MEMORY */
            uint64_t pointer, bytes;
            uint64_t type; /* enum memory_type */
            uint64_t
                handle; /* IPC: hash of the handle that another process opens or opened, else 0 */
        } memory;
        struct { /* DEVICE: from record.device to peer */
            int64_t peer;
        } device_access;
        struct { /* COPY; 2D copies: bytes = width, with pitches and height; memset: src = value */
            uint64_t dst, src, bytes, kind;
            uint64_t dst_pitch, src_pitch, height;
        } copy;
        struct { /* LAUNCH; more than 6 pointers go on in a second record with RECORD_FLAG_MORE */
            uint64_t function;    /* string id of the kernel's (mangled) name */
            uint32_t grid, block; /* number of blocks, threads per block */
            uint8_t count;        /* pointers below */
            uint8_t inferred;     /* bit i: pointer[i] is a guess (found inside a struct) */
            uint8_t written;      /* bit i: the kernel may write through pointer[i] */
            uint8_t known;        /* LAUNCH_* below */
            uint32_t extent;      /* bytes touched from each guessed pointer on; 0 not known */
            uint64_t pointer[6];
        } launch;
        struct { /* GRAPH */
            uint64_t graph, exec;
        } graph;
        struct {             /* RANGE, notice_blind, notice_said, notice_exception,
                                notice_comm_name, notice_library, notice_setting,
                                notice_collective_config */
            uint64_t text;   /* string id */
            uint64_t domain; /* NVTX's domain: string id of its name; 0 the default one */
            uint64_t id;     /* Start, End: which range; notice_blind: enum unseen */
        } range;
        struct { /* ddpcheck_save, _modify, _use; RECORD_NO_VERSION where the mark names none */
            uint64_t name;   /* string id: the tensor, layer or operation as the program calls it */
            uint64_t tensor; /* the program's number of it */
            uint64_t version; /* of the tensor now */
            uint64_t saved;   /* use: its version when it was saved */
        } tensor;
        struct {         /* notice_string: bytes [offset, offset+64) of a string of `bytes` bytes */
            uint64_t id; /* string_id() of the whole */
            uint32_t bytes, offset;
            char text[64];
        } string;
        struct { /* notice_stack: frames [offset, offset+8) of `count`, innermost first */
            uint64_t id;
            uint32_t count, offset;
            uint64_t address[8];
        } frames;
        struct { /* notice_python_stack: Python frames [offset, offset+3) of `count`, innermost
                    first */
            uint64_t id;
            uint64_t native; /* the notice_stack beneath them, 0 none */
            uint16_t count, offset;
            uint32_t line[3];              /* 0: not known */
            uint64_t file[3], function[3]; /* string ids */
        } python;
        struct { /* notice_thread_stack: record.stack is where `thread` stood when it was asked */
            uint64_t capture; /* 1, 2, ... per process: which time it was asked */
            uint32_t thread;  /* kernel thread id */
            uint32_t flags;   /* RECORD_THREAD_* */
            uint64_t name;    /* string id of the thread's name */
            int64_t syscall;  /* the system call that it was in; -1 none (it ran), -2 not known */
            uint32_t index, count; /* which of how many threads of this capture */
            /* If it waits for a mutex: the thread that holds it. Other waits look alike to the
             * kernel: it means something where the stack is in pthread_mutex_lock. 0 not known. */
            uint32_t holder, reserved;
        } standing;
        struct {           /* notice_module: an executable mapping */
            uint64_t base; /* load bias: address - base is the address in the file */
            uint64_t start, end;
            uint64_t path; /* string id */
            uint8_t build_id[20];
            uint32_t build_id_bytes;
        } module;
        struct {                  /* notice_buffer */
            uint64_t base, bytes; /* the allocation */
            uint64_t pointer;     /* what was asked */
            int32_t device;       /* owner, -1 host */
            uint32_t type;        /* enum memory_type */
        } buffer;
        struct {          /* notice_exit, notice_end */
            uint32_t how; /* enum end_how */
            int32_t value;
            uint64_t oom; /* notice_end: 1 if the kernel's out-of-memory killer did it */
        } end;
        struct { /* notice_progress: all launches <= started were reached, <= done were passed */
            uint32_t slot;
            uint32_t idle_us; /* so long before nothing of the slot ran; 0 not known */
            uint64_t started, done;
        } progress;
        struct { /* notice_reached */
            uint64_t comm;
            uint64_t issued; /* collectives numbered below this were issued, reported or not */
            uint64_t done;   /* collectives numbered below this are done; UINT64_MAX: not known */
            int32_t rank;    /* the member's */
        } reached;
        struct {                  /* notice_silent */
            uint64_t realtime_ns; /* since when; 0: it sends again */
        } silent;
        struct { /* notice_ending */
            uint64_t
                silence_ns;  /* how long nothing had happened that may show progress; 0 unknown */
            uint32_t signal; /* that was sent to the job; 0: it made no progress (--timeout) */
            uint32_t reserved;
        } ending;
        struct {             /* notice_position */
            uint32_t place;  /* enum place_kind */
            uint32_t flags;  /* POSITION_* */
            uint64_t text;   /* string id: what it is in ("all_reduce", "usleep"); 0 its own code */
            int32_t lasts_s; /* it was seen there for so long; 0: once */
        } position;
        struct {                /* notice_activity */
            uint64_t name;      /* string id: the kernel's, or what the source calls it; 0: of
                                   several */
            uint64_t begin_ns;  /* by the clock of time_ns */
            uint64_t iteration; /* that it belongs to, plus 1; 0 not known */
            uint32_t kind;      /* enum activity_kind */
            uint32_t count;     /* kernels and copies in it; 0: one */
            uint64_t end_ns;    /* 0: the record's time */
            uint64_t busy_ns;   /* of it, with something running; 0: all */
        } activity;
        struct {               /* notice_kernels: work of one name since the last such notice */
            uint64_t name;     /* string id */
            uint64_t count;    /* how often it ran */
            uint64_t total_ns; /* how long, together */
            uint64_t amount;   /* of kernels the threads that they were launched with, of copies
                                  the bytes; 0 not known */
        } kernels;
        struct { /* notice_timed: a launch of operations ran on the GPU, by the clock of time_ns */
            uint64_t launch; /* of the slot; 0: from now on there are such notices */
            uint64_t begin_ns, end_ns;
            uint32_t slot, reserved;
        } timed;
        struct { /* notice_run_delay: of threads of the process and of its children
                    (docs/speed-rules.md), in the interval that ends at time_ns */
            uint64_t interval_ns;
            uint64_t longest_ns;   /* how long the process's own thread that did most waited for a
                                      processor */
            uint64_t all_ns;       /* all threads together */
            uint64_t throttled_ns; /* CPU limits of the process's cgroups held processors back */
            uint32_t thread;       /* kernel thread id of the one that waited most */
            uint32_t threads;      /* how many were read */
            uint64_t children_ns;  /* as longest_ns, of the children's threads */
        } run_delay;
        struct { /* notice_lost: totals of this process so far */
            uint64_t control, bulk, hashes;
        } lost;
        struct { /* notice_dropped: totals of this process so far */
            uint64_t bulk;
            uint64_t last_ns; /* when the newest of them was recorded */
            uint64_t calls;   /* finished calls of NCCL and waits, and what belongs to them */
        } dropped;
        struct { /* notice_hash */
            uint64_t comm,
                number;          /* of the operation; HASH_NAMED: as in its ddpcheck_hash record */
            uint64_t hash;       /* of all bytes and their places; 0: there were none */
            uint32_t nans, infs; /* elements, saturating; 0 for integers */
            uint64_t bytes;
            uint64_t
                serial; /* HASH_NAMED: of the ddpcheck_hash record; else of the operation's ENTER */
            int32_t rank;  /* the member's */
            uint8_t what;  /* enum hash_what */
            uint8_t flags; /* HASH_UNIFORM; from bit HASH_EXPECTS: which hash_whats the operation
                              will have here */
            uint16_t api;  /* of the operation, API_ddpcheck_hash */
            uint64_t name; /* HASH_NAMED: string id */
        } hash;
        struct {             /* ddpcheck_hash */
            uint64_t comm;   /* whose members should hold the same bytes; 0: all ranks of the job */
            uint64_t number; /* 0,1,2,.. per (member, name) */
            uint64_t name;   /* string id */
            uint64_t bytes, pointer;
            int32_t rank; /* in comm, or of the process */
            uint32_t reserved;
        } named;
        struct {              /* notice_hashing */
            uint64_t entries; /* hashes that can be under way at one time; 0: there is no hashing,
                                 text says why */
            uint64_t text;    /* string id, 0 none */
        } hashing;
    };
};

_Static_assert(sizeof(struct record) == RECORD_BYTES, "the record is on disk and in shared memory");

enum {
    RECORD_FLAG_ADDRESS = 1, /* record.stack is a plain return address */
    RECORD_FLAG_MORE =
        2, /* continues the record before it (LAUNCH); notice_silent: others follow */
    RECORD_FLAG_CAPTURE = 4, /* the stream was being captured into a graph: nothing ran */
    RECORD_FLAG_GONE = 8, /* the communicator was destroyed or aborted before this call; its id and
                             rank are those it had */
    RECORD_FLAG_DRIVER =
        64, /* the call was the driver's function of this meaning (cuMemcpyAsync ...) */
    RECORD_FLAG_REPLAY =
        16, /* NCCL calls: issued again by the launch of a graph that they were captured in */
    RECORD_FLAG_WATCHDOG = 256, /* queries: PyTorch's watchdog made it, which nobody waits for */
    RECORD_FLAG_PAGEABLE = 512, /* copies that block: from pageable memory; when the call returns
                                   its last part may still be on its way to the device */
    RECORD_FLAG_OVER = 128,     /* ENTER: the call is over as well, there is no LEAVE (importers) */
    RECORD_FLAG_REFUSED = 1024, /* collectives: --guard refused the call, NCCL never got it */
    RECORD_FLAG_LATE =
        32 /* COPY, LAUNCH: reported only now; it was issued at the serial in word[RECORD_ISSUED] */
};

enum { RECORD_ISSUED = 9 };

/* launch.known */
enum {
    LAUNCH_PARTLY_KNOWN = 1, /* it may use memory that no pointer here names */
    LAUNCH_REPORTS_RUN = 2   /* a notice_host_function says when it begins to run */
};

enum {
    RECORD_COMM_NONBLOCKING = 1,
    RECORD_COMM_DUPLICATE = 2, /* InitAll: comm.device is listed twice */
    RECORD_COMM_ZERO_ID = 4,   /* InitRank*: the unique id is all zeros */
    RECORD_COMM_ABORTS = 8,    /* Shrink: what runs on the parent is terminated first */
    RECORD_COMM_SUSPENDS = 16, /* Suspend: the memory is given back (NCCL_SUSPEND_MEM) */
    RECORD_COMM_SYMMETRIC = 32 /* WindowRegister: NCCL_WIN_COLL_SYMMETRIC */
};

/* op.flags */
enum {
    RECORD_OP_SCALAR_ON_DEVICE =
        1, /* PreMulSum's scalar lies in device memory; its value is not known */
    /* What an importer's source does not say; a datatype is TYPE_NONE, an operator REDOP_UNKNOWN
       then. */
    RECORD_OP_NO_COUNT = 2,
    RECORD_OP_NO_ROOT = 4,
    RECORD_OP_NO_BUFFERS = 8,
    RECORD_OP_NULL_COMM = 16 /* the communicator is NULL */
};

/* Which bytes a notice_hash is of, and when: on the operation's stream, just before or after it. */
enum hash_what { HASH_SEND_BEFORE, HASH_SEND_AFTER, HASH_RECV_AFTER, HASH_NAMED, HASH_WHATS };
enum { HASH_EXPECTS = 4 };
enum {
    HASH_UNIFORM = 1
}; /* all 8-byte words are alike (zeros, a fill): equal buffers mean nothing */

enum {
    RECORD_THREAD_MAIN = 1,   /* the process's first thread */
    RECORD_THREAD_CALLS = 2,  /* it has made calls that were recorded */
    RECORD_THREAD_PYTHON = 4, /* it has Python frames */
    RECORD_THREAD_INNER = 8   /* of its native frames the outer ones may not be known */
};
#define RECORD_NO_VERSION UINT64_MAX

/* notice_exception */
enum exception_how {
    EXCEPTION_UNCAUGHT, /* nobody caught it: Python prints it and shuts down */
    EXCEPTION_HANDLED,  /* a communicator is ended in an `except` or `finally` block */
    EXCEPTION_SHUTDOWN, /* a communicator is ended while Python shuts down: none is known */
    EXCEPTION_ABORT,    /* abort(), of native code; the text is its reason, as far as it is known */
    EXCEPTION_CAUGHT    /* the program prints its traceback in an `except` block, and may go on */
};
/* The begin of the reason where nobody caught a C++ exception; its type's mangled name follows. */
#define ABORT_EXCEPTION "uncaught C++ exception "
enum { ABORT_EXCEPTION_BYTES = 256 };

/* notice_setting: who set it. */
enum setting_by {
    SETTING_GIVEN,   /* a variable that the process began with */
    SETTING_PROGRAM, /* a variable that the program set, changed or removed before its first call */
    SETTING_HOST     /* a fact about the host, which the collector read */
};

enum said {
    SAID_WARNING,
    SAID_NOTE,
    SAID_ERROR,
    SAID_TIMEOUT, /* an error, unless a finding says why */
    SAID_STUCK,   /* an error, unless a finding says why; all ranks were there */
    SAID_NAMED    /* an error whose text names what failed: others with other numbers are others */
}; /* notice_said: how bad its sayer takes it to be. What to do may follow behind a newline. */

/* Id of an interned string: FNV-1a, 64 bits, of its bytes; never 0. */
static inline uint64_t string_id(const char *text, uint64_t bytes)
{
    uint64_t hash = 14695981039346656037u;
    for (uint64_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)text[i]) * 1099511628211u;
    return hash ? hash : 1;
}

#endif
