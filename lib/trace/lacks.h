/* lacks.h: what the source of a process's records can't say (process_info.lacks; lacks.def). A
 * check that needs it says "not checked", never "fine". */
#ifndef DDPCHECK_LACKS_H
#define DDPCHECK_LACKS_H

#include <stdint.h>

enum lack {
#define LACK(bit, name, what, codes) LACKS_##name = 1 << bit,
#include "lib/trace/lacks.def"
#undef LACK
};

/* Records of a process that lacks TIMING count on from 0 until the first that has a time: what is
 * below this (12 days after the epoch) is a place in an order, no time. */
#define LACKS_TIME_BEGINS UINT64_C(1000000000000000)

struct lack_text {
    uint32_t bit;
    const char *name, *what, *codes; /* "root", "the root of a collective", "DC105" */
};

/* All of them, ended by bit 0. */
extern const struct lack_text lack_texts[];

#endif
