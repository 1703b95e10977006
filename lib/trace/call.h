/* call.h: a call as fields, and as people read it: "ncclAllReduce(count=4096, float32, sum)". */
#ifndef DDPCHECK_CALLED_H
#define DDPCHECK_CALLED_H

#include <stddef.h>

#include "lib/trace/record.h"

/* The arguments that are known and count for its kind; the others are 0. */
enum call_argument {
    ARGUMENT_COUNT = 1,
    ARGUMENT_DATATYPE = 2,
    ARGUMENT_REDOP = 4,
    ARGUMENT_ROOT = 8,
    ARGUMENT_PEER = 16,
    ARGUMENT_NRANKS = 32,
    ARGUMENT_RANK = 64,
    ARGUMENT_COLOR = 128,
    ARGUMENT_KEY = 256,
    ARGUMENT_BYTES = 512,
    ARGUMENT_DRIVER = 1024 /* made through the driver's function */
};

/* Zero-initialised: no call. */
struct called {
    uint16_t api;       /* enum api */
    uint16_t arguments; /* enum call_argument */
    uint8_t datatype, redop;
    int32_t peer; /* root, peer, rank or key */
    int32_t size; /* nranks or color */
    uint64_t count, bytes;
};

struct called call_of_record(const struct record *record);
/* Of the function alone, without arguments. */
struct called call_of_api(unsigned api);
const char *call_name(const struct called *call);
char *call_text(const struct called *call, char *text, size_t bytes); /* Returns text. */

#endif
