/* flight.h: a piece of work that touches memory: an operation, a copy, a memset, a kernel. */
#ifndef DDPCHECK_FLIGHT_H
#define DDPCHECK_FLIGHT_H

#include "analyzer/model/model.h"

enum flight_kind { FLIGHT_OPERATION, FLIGHT_COPY, FLIGHT_KERNEL };

/* How much is known about what is done at an address. */
enum sureness {
    SURE,    /* an operation, a copy, a memset: just this range */
    ASSUMED, /* a kernel that was given the pointer: its first byte, and that it is used by its type
              */
    GUESSED  /* a pointer found inside of a structure */
};

struct access {
    bool writes; /* else it only reads */
    bool staged; /* a copy that the host waited for, but for its last part */
    bool sole;   /* the only pointer that the kernel can write through: it must, or do nothing */
    enum sureness sureness;
};

/* Rows of `width` bytes, `pitch` apart (0: one row), from begin to end. */
struct stretch {
    uint64_t begin, end, width, pitch;
};

enum { FLIGHT_UNREPORTED, FLIGHT_REPORTED_POSSIBLE, FLIGHT_REPORTED_CERTAIN };

struct flight {
    uint32_t ranges;     /* that hold it */
    uint8_t kind;        /* enum flight_kind */
    uint8_t reported;    /* it is in a finding, or one in the making */
    bool from_graph;     /* it runs as part of a graph, or would */
    struct flight *copy; /* hazards.c: while a graph is launched */
    struct place place;
    struct member *member; /* operations */
    struct record record;
    struct site site;
};

#endif
