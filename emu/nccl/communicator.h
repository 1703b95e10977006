/* communicator.h: a ncclComm_t: one member of a communicator, as this process knows it.
 *
 * A handle is alive from the call that makes it until Destroy or Abort. The object lives as long
 * as anything refers to it: the handle, work on a stream or in a graph, a host call in progress. */
#ifndef DDPCHECK_EMU_NCCL_COMMUNICATOR_H
#define DDPCHECK_EMU_NCCL_COMMUNICATOR_H

#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu/nccl/bell.h"
#include "emu/nccl/segment.h"

struct task_launch;
struct scale_operator;
struct registration;

/* Why its work should give up; higher ones include lower ones. */
enum stop { STOP_NONE, STOP_REVOKED, STOP_ABORTED };

/* How far the messages with one peer are, of one direction. Only the running launch touches it. */
struct traffic {
    uint64_t messages, chunks;
};

struct ncclComm {
    int rank, ranks, device;
    struct segment_id id;
    struct segment segment;
    ncclConfig_t config;
    atomic_int references;
    atomic_int stop;  /* enum stop */
    atomic_int state; /* ncclResult_t that ncclCommGetAsyncError returns */
    atomic_bool finalized;
    atomic_bool suspended;
    struct ncclComm *next; /* of all live handles */

    pthread_mutex_t issue;            /* order of launches is order of pushes */
    pthread_mutex_t lock;             /* guards what follows */
    pthread_cond_t changed;           /* anything of it, or `stop` */
    struct task_launch *first, *last; /* eager launches that are not done, as issued */
    bool running;                     /* a launch is at work */
    int recorded;                     /* launches that graphs hold */
    uint64_t host_issued, host_done;  /* host calls that take part in host_meeting */
    struct scale_operator *operators;
    struct registration *registrations;
    uint64_t windows;           /* registered so far */
    int one_sided;              /* puts, signals and waits that are not done */
    uint64_t *received_signals; /* [ranks * SIGNALS]: that waits have claimed */
    int shrinks, grows;
    int grow_ids;             /* made so far by this member: at most one more than `grows` */
    _Atomic(void *) profiler; /* the plugin's context; NULL: it does not know this communicator */
    bool counted;             /* among those that keep the plugin loaded */
    uint64_t hash;            /* what NCCL calls commHash */
    uint64_t numbers[8];      /* collectives by kind, as reported to the plugin */

    /* Of the launch at work. */
    uint64_t device_met, stage_rounds, collectives;
    struct traffic *sent, *received; /* [ranks] */
    /* Of the host call at work. */
    uint64_t host_met;
};

/* A new handle in state ncclInProgress, with one reference for the handle. ranks may be 0 while
 * not known. NULL if there is no memory. */
struct ncclComm *communicator_new(int rank, int ranks, int device, const ncclConfig_t *config);
/* Sets how many members there are and which one this is. False: no memory. */
bool communicator_resize(struct ncclComm *comm, int rank, int ranks);

/* A live handle with one more reference (communicator_put ends it), else NULL. */
struct ncclComm *communicator_get(ncclComm_t handle);
void communicator_hold(struct ncclComm *comm);
void communicator_put(struct ncclComm *comm);
/* Ends the handle and its reference. False if another call did so before. */
bool communicator_retire(struct ncclComm *comm);

/* ncclSuccess if operations may be issued, else why not (with a warning). */
ncclResult_t communicator_ready(struct ncclComm *comm);
bool communicator_blocking(const struct ncclComm *comm);

/* Makes everything of it that waits on this machine give up, at once. */
void communicator_stop(struct ncclComm *comm, enum stop why);
/* Waits until it is aborted: what a bootstrap that can't complete does. */
void communicator_hang(struct ncclComm *comm);
/* Waits until no launch is outstanding and no graph holds one, or the communicator is stopped. */
void communicator_drain(struct ncclComm *comm);

/* Guards for work on the stream and for host calls. */
struct guard communicator_device_guard(const struct ncclComm *comm);
struct guard communicator_host_guard(const struct ncclComm *comm);

/* Host calls of one communicator that meet other members run one after the other, as issued:
 * take a number when called, and run between enter and leave. enter is false when aborted. */
uint64_t communicator_host_number(struct ncclComm *comm);
/* Gives the last number back: the call will never run. */
void communicator_host_return(struct ncclComm *comm, uint64_t number);
bool communicator_host_enter(struct ncclComm *comm, uint64_t number);
void communicator_host_leave(struct ncclComm *comm);

#endif
