/* kineto_event.h: one event of a Chrome trace as torch.profiler (Kineto) writes it, as far as it
 * concerns collectives.
 *
 * What the fields mean is from PyTorch's saveNcclMeta (torch/csrc/profiler/util.cpp),
 * RECORD_PARAM_COMMS_DATA in ProcessGroupNCCL.cpp, and Kineto's output_json.cpp. */
#ifndef DDPCHECK_KINETO_EVENT_H
#define DDPCHECK_KINETO_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/import/json_stream.h"
#include "lib/trace/kind_names.h"

#define KINETO_UNKNOWN INT64_MIN

enum kineto_kind {
    KINETO_OTHER,
    KINETO_CALL,      /* record_param_comms: a call of a process group */
    KINETO_KERNEL,    /* NCCL's kernel of one, on the GPU */
    KINETO_WORK,      /* another kernel, copy or memory set on the GPU */
    KINETO_LAUNCH,    /* the launch of a kernel, on the CPU */
    KINETO_ALONE,     /* annotation "nccl:send 0->1" inside of a call: it is launched by itself */
    KINETO_COALESCED, /* annotation "nccl:coalesced": ends a group of calls */
    KINETO_UNEVEN, /* annotation "nccl:_broadcast_oop" or "_reduce_oop" inside of a call: its ranks'
                      parts differ in size */
    KINETO_STEP,   /* annotation "ProfilerStep#12" */
    KINETO_GLOO,   /* annotation "gloo:all_reduce": an operation of another library */
    KINETO_OLD     /* what PyTorch 1.8 to 2.1 recorded of NCCL's operations: a name */
};

/* The numbers of an event; KINETO_UNKNOWN where they are missing. */
enum kineto_number {
    KINETO_EXTERNAL,
    KINETO_CORRELATION,
    KINETO_IN,
    KINETO_OUT,
    KINETO_SIZE,
    KINETO_START,
    KINETO_STRIDE,
    KINETO_RANK,
    KINETO_SEQ,
    KINETO_SEND,
    KINETO_RECV,
    KINETO_STREAM,
    KINETO_DEVICE,
    KINETO_NUMBERS
};

/* A list of ranks: numbers separated by commas, "..." where the writer left some out. Empty: not
 * known. */
enum { KINETO_RANKS_MAX = 1 << 17, KINETO_NAME_MAX = 256 };

struct kineto_event {
    enum kineto_kind kind;
    const struct kind_name
        *collective;       /* of a call; NULL: "Collective name" is missing or unknown */
    uint64_t offset;       /* byte of the text where it begins */
    int64_t ts_ns, dur_ns; /* as the file counts; KINETO_UNKNOWN */
    int64_t pid, tid;
    int64_t number[KINETO_NUMBERS];
    enum datatype datatype;     /* TYPE_NONE: not known */
    bool split;                 /* of unequal parts: ranks' counts differ */
    char name[KINETO_NAME_MAX]; /* of WORK: a kernel's without its return type and parameters */
    char collective_name[KINETO_NAME_MAX], group[KINETO_NAME_MAX], description[KINETO_NAME_MAX];
    char ranks[KINETO_RANKS_MAX];
};

/* Reads an event whose TOKEN_OBJECT was just read, to its end. Returns 0, or -1 (json_error). */
int kineto_event_read(struct json_stream *json, struct kineto_event *event);

/* Reads a value: a list of ranks, or a text that holds one ("[0, 1, ..., 31]"), cut to `bytes`.
 * Returns 0 or -1. */
int kineto_ranks_read(struct json_stream *json, char *ranks, size_t bytes);
/* Reads a value and keeps it if it is text, cut to `bytes`. */
int kineto_text_read(struct json_stream *json, char *text, size_t bytes);
/* Reads a value; a whole number, also within text, lands in *number. */
int kineto_number_read(struct json_stream *json, int64_t *number);

#endif
