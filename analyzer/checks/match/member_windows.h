/* member_windows.h: the windows that a member of a communicator has (ncclCommWindowRegister); part
 * of DC113. */
#ifndef DDPCHECK_MEMBER_WINDOWS_H
#define DDPCHECK_MEMBER_WINDOWS_H

#include "analyzer/check.h"
#include "analyzer/model/model.h"

struct known_window {
    uint64_t handle; /* 0: not known (in a group NCCL gives it later) */
    uint64_t begin, bytes;
    uint32_t number; /* how many the member registered before */
    bool is_symmetric;
    struct site site;
};

/* The state of DC113 with each member. */
struct member_windows {
    struct known_window *list;
    uint32_t count, capacity;
};

/* Where in a symmetric window an address is. */
struct window_use {
    bool is_inside;
    uint32_t number;
    uint64_t offset;
};

/* ENTER and LEAVE of the calls that register and remove windows. */
void member_windows_enter(struct analyzer *analyzer, const struct event *event);
void member_windows_leave(struct analyzer *analyzer, const struct event *event);
/* Of struct check. */
void member_windows_end(void *state);

/* The member's windows; NULL: it has had none. */
const struct member_windows *member_windows_of(const struct analyzer *analyzer,
                                               const struct member *member);
/* The member's window of that handle, or of that number; NULL: it has none that is known. */
const struct known_window *member_window_by_handle(const struct analyzer *analyzer,
                                                   const struct member *member, uint64_t handle);
const struct known_window *member_window_by_number(const struct analyzer *analyzer,
                                                   const struct member *member, uint32_t number);
/* False if the address is in several of the member's symmetric windows. */
bool member_window_use(const struct analyzer *analyzer, const struct member *member,
                       uint64_t address, struct window_use *use);

#endif
