/* frames.c: unwinds a thread, frame by frame. */
#include "interpose/stacks/frames.h"

#include <stdatomic.h>
#include <stddef.h>
#include <ucontext.h>

#include "interpose/stacks/frame_rows.h"
#include "lib/python/peek.h"

struct registers {
    uint64_t value[REGISTERS];
    uint32_t known; /* a bit for each */
};

/* Static, because the stack of a signal handler may be small. */
static struct {
    _Atomic uint32_t taken;
    struct frame_row row;
    struct registers registers;
} walk;

void frames_forked(void)
{
    atomic_store(&walk.taken, 0);
}

static bool find_frame(uint64_t *frame)
{
    const struct frame_row *row = &walk.row;
    if (!row->has_frame || row->frame_register >= REGISTERS ||
        !(walk.registers.known >> row->frame_register & 1))
        return false;
    *frame = walk.registers.value[row->frame_register] + (uint64_t)row->frame_offset;
    return !row->is_frame_read || peek(*frame, frame, sizeof *frame);
}

/* From a frame to its caller's. */
static bool step_to_caller(void)
{
    const struct frame_row *row = &walk.row;
    struct registers caller = walk.registers;
    uint64_t frame;
    if (!find_frame(&frame) || frame <= walk.registers.value[REGISTER_STACK])
        return false; /* stacks grow down: this is no caller */
    for (unsigned i = 0; i < REGISTERS; i++) {
        uint64_t place = frame + (uint64_t)row->offset[i];
        if (row->rule[i] == RULE_SAME && i != REGISTER_RETURN)
            continue;
        bool known = row->rule[i] == RULE_VALUE ||
                     (row->rule[i] == RULE_SAVED && peek(place, &caller.value[i], sizeof place));
        if (row->rule[i] == RULE_VALUE)
            caller.value[i] = place;
        caller.known = (caller.known & ~(1u << i)) | (uint32_t)known << i;
    }
    caller.value[REGISTER_STACK] = frame;
    caller.known |= 1u << REGISTER_STACK;
    walk.registers = caller;
    return true;
}

/* From a signal handler to what it interrupted, whose registers the kernel has put where the
 * handler's stack ends. */
static bool step_to_interrupted(void)
{
#if defined(__x86_64__)
    static const unsigned char number[REGISTERS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    greg_t saved[REG_RIP + 1];
    if (!peek(walk.registers.value[REGISTER_STACK] + offsetof(ucontext_t, uc_mcontext.gregs), saved,
              sizeof saved))
        return false;
    for (unsigned i = 0; i < REGISTERS; i++)
        walk.registers.value[i] = (uint64_t)saved[number[i]];
    walk.registers.known = (1u << REGISTERS) - 1;
    return true;
#else
    return false;
#endif
}

/* *is_exact: the address is that of an instruction, not where a call returns to. */
static bool step_frame(bool *is_exact)
{
    if (!frame_rows_find(walk.registers.value[REGISTER_RETURN] - !*is_exact, &walk.row))
        return false;
    *is_exact = walk.row.is_signal;
    if (*is_exact)
        return step_to_interrupted();
    return step_to_caller() && walk.registers.known >> REGISTER_RETURN & 1 &&
           walk.registers.value[REGISTER_RETURN];
}

static uint32_t walk_frames(const struct registers *from, bool is_exact, uint64_t *address,
                            uint32_t max, bool *in_handler)
{
    uint32_t count = 0;
    address[count++] = from->value[REGISTER_RETURN];
    if (!FRAMES_ARE_WALKED || atomic_exchange(&walk.taken, 1))
        return count;
    walk.registers = *from;
    while (count < max && step_frame(&is_exact)) {
        *in_handler |= is_exact;
        address[count++] = walk.registers.value[REGISTER_RETURN];
    }
    atomic_store(&walk.taken, 0);
    return count;
}

uint32_t frames_walk(uint64_t at, uint64_t stack_pointer, uint64_t *address, uint32_t max)
{
    struct registers from = {.known = 1u << REGISTER_STACK};
    bool in_handler = false;
    from.value[REGISTER_STACK] = stack_pointer;
    from.value[REGISTER_RETURN] = at;
    return walk_frames(&from, true, address, max, &in_handler);
}

uint32_t frames_walk_self(uint64_t site, uint64_t frame, uint64_t *address, uint32_t max,
                          bool *in_handler)
{
    enum { SAVED_WORDS = 2 }; /* the caller's base pointer and the return address */
    struct registers from = {.known = 1u << REGISTER_STACK};
    from.value[REGISTER_STACK] = frame + SAVED_WORDS * sizeof frame;
    from.value[REGISTER_RETURN] = site;
    if (peek(frame, &from.value[REGISTER_BASE], sizeof frame))
        from.known |= 1u << REGISTER_BASE;
    *in_handler = false;
    return walk_frames(&from, false, address, max, in_handler);
}
