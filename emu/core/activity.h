/* activity.h: what ran on the emulated devices, for the emulated CUPTI. */
#ifndef DDPCHECK_EMU_ACTIVITY_H
#define DDPCHECK_EMU_ACTIVITY_H

#include <stddef.h>
#include <stdint.h>

enum emu_activity_kind { EMU_ACTIVITY_KERNEL, EMU_ACTIVITY_COPY, EMU_ACTIVITY_FILL };

struct emu_activity {
    enum emu_activity_kind kind;
    const char *name; /* of a kernel, mangled */
    int device;
    uint64_t stream, bytes;
    uint32_t grid[3], block[3]; /* of a kernel */
    uint32_t correlation;       /* of the call that put it there; 0: a graph's */
    int copy_kind;              /* enum cudaMemcpyKind */
    uint64_t begin_ns, end_ns;  /* by CLOCK_REALTIME */
};

/* Who wants to know. `launched` is called by the calling thread, `ran` by the stream's. */
struct emu_activity_listener {
    void (*launched)(uint32_t correlation);
    void (*ran)(const struct emu_activity *activity);
};
/* From now on; NULL: nobody. */
void emu_activity_listen(const struct emu_activity_listener *listener);

/* The calling thread puts something on a stream. Returns its number; 0 if nobody wants to know. */
uint32_t emu_activity_launch(void);
/* It begins; returns 0 if nobody wants to know. */
uint64_t emu_activity_begin(void);
/* It has ended; without a begin nothing happens. Fills in the end. */
void emu_activity_end(struct emu_activity *activity, uint64_t begin_ns);
/* The same with a given duration in ns (model.h). */
void emu_activity_lasted(struct emu_activity *activity, uint64_t begin_ns, uint64_t lasted_ns);

#endif
