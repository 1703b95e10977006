/* segment.h: the shared memory of one communicator: who its members are, where they meet, and the
 * staging buffers through which all payload goes (device memory is private to its process).
 *
 * Layout: header, members[ranks], channels[ranks * ranks], stages (ranks * STAGES), rings (one for
 * each channel). The segment has a name until all members have mapped it. */
#ifndef DDPCHECK_EMU_NCCL_SEGMENT_H
#define DDPCHECK_EMU_NCCL_SEGMENT_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "emu/nccl/bell.h"

/* Of the name, followed by the creator's process id, the PID namespace in which it is one, and the
 * rest of the id. */
#define SEGMENT_PREFIX "ddpcheck-nccl-"

enum {
    SEGMENT_PAGE = 4096, /* the header's room, and what other parts are multiples of */
    STAGES = 2,          /* staging buffers of a member: while one is read the other is written */
    RING_CHUNKS = 4,     /* a channel's ring */
    WINDOWS = 256,       /* of a member; the slots of older ones are used again */
    SIGNAL_KINDS = 4,    /* indices of signals, and contexts, that there are */
    SIGNALS = SIGNAL_KINDS * SIGNAL_KINDS,
};

/* Names a segment, and is what a ncclUniqueId carries. */
struct segment_id {
    int64_t creator;    /* process that made the id: shows the next one what is a leftover */
    uint64_t namespace; /* of the creator: elsewhere its number means nothing */
    uint64_t high, low;
};

/* What a member publishes about a collective; the members compare. Padding is zero. */
struct call_signature {
    int32_t kind, type, op, root;
    uint64_t count;
};

/* What a member publishes for a split. */
struct split_vote {
    int32_t color, key;
};

/* A window in the member's own memory. */
struct window_place {
    uint64_t base, bytes;
};

struct segment_member {
    pid_t process;
    bool present;
    uint64_t host;
    int32_t device;                      /* as the machine counts them */
    struct bell bell;                    /* rung for news on any of its channels */
    struct call_signature signatures[2]; /* of the operation, by its number's last bit */
    struct split_vote votes[2];
    struct window_place windows[WINDOWS]; /* by their number, from all members' registration */
} __attribute__((aligned(64)));

/* The way from one member to another. Numbers only grow. */
struct segment_channel {
    _Atomic uint64_t sends, recvs;         /* messages announced by either end */
    uint64_t send_bytes[2], recv_bytes[2]; /* their lengths, by the message's last bit */
    _Atomic uint64_t written, read;        /* chunks put into the ring and taken out of it */
    _Atomic uint64_t signals[SIGNALS];     /* sent so far, by context and index */
} __attribute__((aligned(64)));

struct header {
    uint64_t magic; /* set last */
    int32_t ranks;
    uint32_t stage_bytes, chunk_bytes;
    _Atomic int32_t joined;
    struct bell joins;
    struct rendezvous device_meeting; /* of collectives, on streams */
    struct rendezvous host_meeting;   /* of host calls: split, windows */
} __attribute__((aligned(64)));

struct segment {
    struct header *header;
    struct segment_member *members;
    struct segment_channel *channels;
    char *stages, *rings;
    size_t bytes;
    char name[NAME_MAX];
};

/* A fresh id that nobody else has. Returns 0 or -1 with errno. */
int segment_id_make(struct segment_id *id);
/* The id all holders of `id` get for the same numbers, for split and shrink. */
struct segment_id segment_id_derive(struct segment_id id, uint64_t number, uint64_t what);

/* Maps the segment, making it if nobody has. *lock holds the segment's lock, for
 * segment_unlock. Returns 0, 1 if the segment is of another number of ranks (not mapped then),
 * or -1 with errno. */
int segment_open(struct segment *segment, struct segment_id id, int ranks, int *lock);
void segment_unlock(int lock);
void segment_unlink(const struct segment *segment);
void segment_close(struct segment *segment);
/* The PID namespace of this process; 0 where /proc does not say. */
uint64_t segment_namespace(void);
/* Unlinks segments of this PID namespace whose processes are all dead. */
void segment_clean(void);

char *segment_stage(const struct segment *segment, int rank, uint64_t round);
struct segment_channel *segment_channel(const struct segment *segment, int from, int to);
char *segment_chunk(const struct segment *segment, int from, int to, uint64_t number);

#endif
