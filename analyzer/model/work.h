/* work.h: work on streams: what the GPU says of it, what is not done yet, what is done, and the
 * streams that it is on. Plain state, as model.h. */
#ifndef DDPCHECK_WORK_H
#define DDPCHECK_WORK_H

#include <uthash.h>

#include "analyzer/model/clock.h"
#include "lib/trace/signature.h"
#include "analyzer/model/site.h"

struct capture;
struct channel;
struct member;
struct stream_state;

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
    struct issued before_it;   /* struct passed's */
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
    uint32_t slotted;   /* in the queue with progress words: without any, no more is known of it */
    uint64_t passed_ns; /* when its last operation was done */
    struct clock
        reported; /* what `before` of its operations names: later ones need not name it again */
};

#endif
