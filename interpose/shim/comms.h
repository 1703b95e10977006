/* comms.h: the communicators that live in this process, by their ncclComm_t.
 *
 * A fixed open-addressed table without locks; an entry is reused after the communicator's end, but
 * its memory is never freed, so that a program that uses a communicator while it destroys it can't
 * make the shim crash. */
#ifndef DDPCHECK_COMMS_H
#define DDPCHECK_COMMS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    COMMS_MAX = 1024,
    MEMBER_STREAMS = 8,
    REDOPS_MAX = 1024,
    SHRUNK_SETS = 8,
    SIGNAL_KINDS_MAX = 8192
};

/* A stream that a member launched on, and its progress slot. */
struct member_stream {
    _Atomic uint32_t ready; /* 1 when the fields are valid */
    uint32_t slot;          /* RECORD_NO_SLOT: none was left */
    uint64_t stream;
};

/* How often a member has called ncclCommShrink without these ranks. */
struct shrunk_set {
    _Atomic uint64_t excluded; /* hash of the set; 0: unused */
    _Atomic uint32_t times;
};

struct local_member {
    _Atomic(void *) handle; /* NULL: never used; COMM_GONE: was used */
    _Atomic(void *) last;   /* the handle that was, while `handle` is COMM_GONE */
    _Atomic uint32_t ended; /* NCCL agreed that `last` ended */
    uint64_t comm;          /* cluster-wide id */
    uint64_t parent;
    uint64_t gpu;
    uint64_t name;        /* id of the string that the program calls it by, 0 none */
    int32_t rank, nranks; /* -1 not known yet */
    int32_t device;
    uint32_t flags; /* RECORD_COMM_* */
    uint32_t ordinal;
    int32_t color, key;
    _Atomic uint32_t announced;              /* notice_member was made */
    _Atomic uint32_t splits, shrinks, grows; /* so far */
    struct shrunk_set shrunk[SHRUNK_SETS];
    _Atomic int32_t async;   /* last asynchronous error that was recorded */
    _Atomic uint64_t number; /* next collective */
    _Atomic uint32_t state;  /* its struct ring_member, counted from 1; 0 none yet */
    _Atomic(_Atomic uint64_t *)
        p2p;            /* next number by peer: sends, receives, and one for peers out of range */
    uint32_t p2p_peers; /* peers that the array has room for */
    struct member_stream stream[MEMBER_STREAMS];
};

/* An operator of ncclRedOpCreatePreMulSum. */
struct premul {
    _Atomic uint64_t key; /* hash of (communicator handle, operator); 0 free */
    uint64_t scalar;
    bool on_device; /* the scalar's value is not known */
};

/* What a creating call knows before the real function runs. */
struct pending_init {
    void *const *handle; /* where NCCL writes the ncclComm_t */
    uint64_t comm, parent, gpu, name;
    int32_t rank, nranks, device, color, key;
    uint32_t flags, ordinal;
    uint32_t excluded_count; /* Shrink */
    uint64_t excluded;       /* hash of the set */
    bool parent_ended;
};

/* The member of a handle, or NULL. */
struct local_member *comms_find(const void *handle);

/* The member with the most ranks on a device (of several, the one with the lowest id: the same on
 * every rank), or NULL. */
struct local_member *comms_largest(int device);

/* The member's communicator has not ended. */
bool comms_is_live(const struct local_member *member);

/* Adds (or, for a handle that NCCL gave out again, replaces) the member of `handle`. Returns NULL
 * if the table is full (printed once). */
struct local_member *comms_add(void *handle, const struct pending_init *init);

/* The handle is no communicator any more, as far as calls find it. */
void comms_remove(struct local_member *member);
/* NCCL did end the communicator of a handle that was removed. */
void comms_ended(const void *handle);
/* NCCL gave the handle out again, as a communicator that is not recorded. */
void comms_reused(const void *handle);
/* The communicator that a handle was before it ended, NULL if it is not known. */
const struct local_member *comms_find_ended(const void *handle);

/* The number of the member's next send to (receive from) `peer`. Returns false if memory for the
 * numbers can't be had (printed once). */
bool comms_p2p_number(struct local_member *member, int peer, bool receive, uint64_t *number);

/* Counts `signals` of one kind to (for a wait: from) `peer`; *before: how many there were. Returns
 * false if there is no room for another kind (printed once). */
bool comms_signal_number(const struct local_member *member, int peer, int32_t signal, bool waits,
                         uint64_t signals, uint64_t *before);

/* Counts a shrink without these ranks; how many there were before. The ranks that stay are the same
 * each time, so all of them count the same, whatever else each has called. Sets beyond SHRUNK_SETS
 * share a count. */
uint32_t comms_count_shrink(struct local_member *member, uint64_t excluded);

/* Counts a call of ncclCommInitAll; how many there were before. */
uint32_t comms_count_init_all(void);

void comms_premul_add(const void *handle, int redop, uint64_t scalar, bool on_device);
void comms_premul_remove(const void *handle, int redop);
/* An operator; NULL if the handle is none that was created here. */
const struct premul *comms_premul_find(const void *handle, int redop);

/* In the child of a fork. */
void comms_forked(void);

#endif
