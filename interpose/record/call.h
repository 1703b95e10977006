/* call.h: one intercepted call that is being recorded. */
#ifndef DDPCHECK_CALL_H
#define DDPCHECK_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/shim/thread.h"

/* On the wrapper's stack. */
struct recorded_call {
    struct shim_thread *thread;
    const void *site;  /* the caller's return address */
    const void *frame; /* the wrapper's frame: the caller's begins above it */
    uint64_t enter;    /* serial of the ENTER record, 0 none */
    uint64_t comm;     /* for the LEAVE record */
    uint64_t scalar;   /* PreMulSum */
    bool is_refused;   /* --guard: the real function is not called */
    bool on_device;    /* its scalar lies in device memory */
    void *init;        /* struct pending_init of a creating call */
    uint32_t slot;     /* progress slot of an operation outside groups */
    int32_t device;    /* an operation's member's; RECORD_NO_DEVICE not known */
    int error;         /* errno as the program has it */
    uint16_t api;      /* enum api */
    bool per_thread;   /* the default stream is the thread's own */
    uint16_t flags;    /* RECORD_FLAG_*s of all its records */
    uint64_t capture;  /* id of the capture that it ends */
    void *token;       /* what goes from before the real call to after it */
};

#endif
