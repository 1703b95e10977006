/* window_sizes.h: windows of one communicator whose size differs between ranks; part of DC109.
 *
 * Rule: ncclCommWindowRegister is collective, and "buffer size must be equal among ranks by
 * default" (NCCL user guide, "Window Registration"). */
#ifndef DDPCHECK_WINDOW_SIZES_H
#define DDPCHECK_WINDOW_SIZES_H

#include "analyzer/check.h"
#include "analyzer/model/model.h"

enum { WINDOWS_KEPT = 8 };

/* The newest windows of a member, by their number; the state of DC109 with each member. */
struct window_sizes {
    struct {
        uint64_t bytes;
        struct site site;
    } window[WINDOWS_KEPT];
    bool reported;
};

/* Of struct check. */
event_handler window_sizes_on_nccl;

#endif
