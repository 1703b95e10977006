/* frame_rows.h: how to get from a frame to its caller's. */
#ifndef DDPCHECK_FRAME_ROWS_H
#define DDPCHECK_FRAME_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* Registers as the x86-64 ABI numbers them; the last stands for the return address. */
enum { REGISTER_BASE = 6, REGISTER_STACK = 7, REGISTER_RETURN = 16, REGISTERS };

enum rule { RULE_SAME, RULE_SAVED, RULE_VALUE, RULE_UNKNOWN };

struct frame_row {
    bool is_signal;     /* the kernel called this function: none of what follows holds */
    bool has_frame;     /* the frame's address is register + offset, */
    bool is_frame_read; /* or what lies there */
    uint64_t frame_register;
    int64_t frame_offset;
    enum rule rule[REGISTERS];
    int64_t offset[REGISTERS]; /* SAVED: where, VALUE: what, from the frame's address */
};

/* What holds at the instruction at `at`. Returns false if that is not known. One thread at a time
 * may call it. */
bool frame_rows_find(uint64_t at, struct frame_row *row);

#endif
