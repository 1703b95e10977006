/* nccl_profiler.h: NCCL's profiler plugin interface, versions 1 (NCCL 2.23) to 7 (2.31), as its
 * documentation and the guide to writing plugins lay it out (NVIDIA/nccl, ext-profiler/README.md).
 * CUDA's and NCCL's development packages bring no header for it: a plugin brings its own, and NCCL
 * promises that a version never changes.
 *
 * NCCL loads the library that NCCL_PROFILER_PLUGIN names, takes the highest ncclProfiler_v* that
 * both know, and calls init for each communicator. Events come as startEvent (which gives the
 * handle), recordEventState and stopEvent, on whatever thread is at work; a parent may have been
 * stopped before its child starts. The two sides of it are interpose/plugin/profiler.c and, in the
 * emulated NCCL, emu/nccl/profiler.c. */
#ifndef DDPCHECK_ABI_NCCL_PROFILER_H
#define DDPCHECK_ABI_NCCL_PROFILER_H

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types of events, and bits of the mask that init sets. */
enum profile {
    PROFILE_GROUP =
        1
        << 0, /* NCCL launches one kernel: the parent of its COLLs and P2PS (their group, in v5) */
    PROFILE_COLL = 1 << 1,
    PROFILE_P2P = 1 << 2,
    PROFILE_PROXY_OP = 1 << 3,
    PROFILE_PROXY_STEP = 1 << 4,
    PROFILE_PROXY_CTRL = 1 << 5,
    PROFILE_KERNEL_CH =
        1 << 6, /* v3: a channel of the kernel works on the COLL or P2P that is its parent */
    PROFILE_NET_PLUGIN = 1 << 7,
    PROFILE_GROUP_API =
        1 << 8, /* v5: the program's ncclGroup, or the one that each call makes for itself */
    PROFILE_COLL_API = 1 << 9, /* v5: the program's call; the parent of COLL */
    PROFILE_P2P_API = 1 << 10, /* v5: the program's call; the parent of P2P */
    PROFILE_KERNEL_LAUNCH = 1 << 11,
    PROFILE_CE_COLL =
        1 << 12 /* v6: in the place of a COLL that copy engines do, without a kernel */
};

/* States of recordEventState that are used here. */
enum profile_state {
    PROFILE_STATE_KERNEL_CH_STOP = 22,
    PROFILE_STATE_GROUP_START_OVER = 23, /* v5, of GROUP_API: ncclGroupStart is over */
    PROFILE_STATE_GROUP_END_BEGINS = 24  /* v5: the outermost ncclGroupEnd begins */
};

/* v1's numbers of functions; later versions have names: "AllReduce", "Send", and "ncclFloat32". */
enum profile_function {
    PROFILE_BROADCAST,
    PROFILE_REDUCE,
    PROFILE_ALL_GATHER,
    PROFILE_REDUCE_SCATTER,
    PROFILE_ALL_REDUCE,
    PROFILE_SEND_RECV,
    PROFILE_SEND,
    PROFILE_RECV
};

struct profile_kernel_ch {
    uint8_t channel;
    uint64_t timer; /* v4: the GPU's clock; v3 ends before it */
};

struct profile_event_v1 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *name;           /* of the communicator */
            uint64_t comm_hash, number; /* number: of this function in this communicator */
            uint8_t function;
            const void *send;
            void *recv;
            size_t count; /* NCCL's own: AllGather and Broadcast are in bytes, of type int8 */
            int root;
            uint8_t datatype;
            uint32_t op;
            size_t traffic;
            uint8_t channels_max, warps, algorithm, protocol;
            int is_collnet, is_nvls;
        } coll;
        struct {
            const char *name;
            uint64_t comm_hash;
            uint8_t function;
            void *buffer;
            uint8_t datatype;
            size_t count;
            int peer;
        } p2p;
    };
};

struct profile_p2p_v2 {
    const char *name;
    uint64_t comm_hash;
    const char *function;
    void *buffer;
    const char *datatype;
    size_t count;
    int peer;
};

struct profile_event_v2 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t comm_hash, number;
            const char *function;
            const void *send;
            void *recv;
            size_t count;
            int root;
            const char *datatype;
            size_t traffic;
            uint8_t channels_max, warps;
            const char *algorithm, *protocol;
        } coll;
        struct profile_p2p_v2 p2p;
    };
};

struct profile_event_v3 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t comm_hash, number;
            const char *function;
            const void *send;
            void *recv;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels_max, warps;
            const char *algorithm, *protocol;
        } coll;
        struct profile_p2p_v2 p2p;
        struct profile_kernel_ch kernel_ch;
    };
};

struct profile_coll_v4 {
    uint64_t number;
    const char *function;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels, warps;
    const char *algorithm, *protocol;
    void *group; /* v5 */
};

struct profile_p2p_v4 {
    const char *function;
    void *buffer;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t channels;
    void *group; /* v5 */
};

struct profile_event_v4 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct profile_coll_v4 coll;
        struct profile_p2p_v4 p2p;
        struct profile_kernel_ch kernel_ch;
    };
};

/* Versions 6 and 7 add members to the union, for types of events that are not wanted here, or whose
 * own members are not used. */
#define profile_event_v6 profile_event_v5
#define profile_event_v7 profile_event_v5
struct profile_event_v5 {
    uint64_t type;
    void *parent;
    int rank; /* of API events 0 everywhere before NCCL 2.30 (NVIDIA/nccl issue 2300) */
    union {
        struct {
            bool captured;
            int depth; /* 1: a call's own group */
        } group_api;
        struct {
            const char *function;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool captured;
        } coll_api;
        struct {
            const char *function;
            size_t count;
            const char *datatype;
            void *stream;
            bool captured;
        } p2p_api;
        struct profile_coll_v4 coll;
        struct profile_p2p_v4 p2p;
        struct profile_kernel_ch kernel_ch;
    };
};

/* What goes with a state; unused here but for its size. */
union profile_state_arguments {
    uint64_t timer;
    void *data;
};

typedef void profile_logger(int level, unsigned long flags, const char *file, int line,
                            const char *format, ...);

/* The tables of functions. Every function but init is to return ncclSuccess always. */
#define PROFILER_TABLE(version, ...)                                                               \
    struct nccl_profiler_v##version {                                                              \
        const char *name;                                                                          \
        ncclResult_t (*init)(__VA_ARGS__);                                                         \
        ncclResult_t (*start)(void *context, void **handle,                                        \
                              struct profile_event_v##version *event);                             \
        ncclResult_t (*stop)(void *handle);                                                        \
        ncclResult_t (*record)(void *handle, int state, union profile_state_arguments *arguments); \
        ncclResult_t (*finalize)(void *context);                                                   \
    }

PROFILER_TABLE(1, void **context, int *mask);
PROFILER_TABLE(2, void **context, int *mask);
PROFILER_TABLE(3, void **context, int *mask);
PROFILER_TABLE(4, void **context, int *mask, const char *name, uint64_t comm_hash, int nodes,
               int ranks, int rank, profile_logger *log);
#define PROFILER_TABLE_LATER(version)                                                        \
    PROFILER_TABLE(version, void **context, uint64_t comm_hash, int *mask, const char *name, \
                   int nodes, int ranks, int rank, profile_logger *log)
PROFILER_TABLE_LATER(5);
PROFILER_TABLE_LATER(6);
PROFILER_TABLE_LATER(7);

#define AT(version, field, offset)                                               \
    _Static_assert(offsetof(struct profile_event_v##version, field) == (offset), \
                   "NCCL's layout of version " #version)
AT(1, coll.comm_hash, 32);
AT(1, coll.function, 48);
AT(1, coll.send, 56);
AT(1, coll.count, 72);
AT(1, coll.root, 80);
AT(1, coll.datatype, 84);
AT(1, coll.channels_max, 104);
AT(1, coll.is_nvls, 112);
AT(1, p2p.function, 40);
AT(1, p2p.buffer, 48);
AT(1, p2p.count, 64);
AT(1, p2p.peer, 72);
AT(2, coll.function, 48);
AT(2, coll.root, 80);
AT(2, coll.datatype, 88);
AT(2, coll.channels_max, 104);
AT(2, coll.protocol, 120);
AT(2, p2p.function, 40);
AT(2, p2p.datatype, 56);
AT(2, p2p.peer, 72);
AT(3, coll.datatype, 88);
AT(3, coll.channels_max, 96);
AT(3, coll.protocol, 112);
AT(3, kernel_ch.channel, 24);
AT(4, coll.number, 24);
AT(4, coll.function, 32);
AT(4, coll.count, 56);
AT(4, coll.channels, 80);
AT(4, coll.protocol, 96);
AT(4, p2p.function, 24);
AT(4, p2p.peer, 56);
AT(4, p2p.channels, 60);
AT(4, kernel_ch.timer, 32);
AT(5, parent, 8);
AT(5, rank, 16);
AT(5, group_api.depth, 28);
AT(5, coll_api.root, 48);
AT(5, coll_api.captured, 64);
AT(5, p2p_api.stream, 48);
AT(5, p2p_api.captured, 56);
AT(5, coll.group, 104);
AT(5, p2p.group, 64);
#undef AT

#endif
