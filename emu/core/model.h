/* model.h: how fast devices and links are modelled to be, and when they pause.
 *
 * Without settings everything takes as long as it takes on this machine. With them (model_rules.c)
 * a stream really waits, so that a kernel, a copy or a collective lasts at least as long as
 * modelled. Devices are numbered as on the machine; times are CLOCK_MONOTONIC. */
#ifndef DDPCHECK_EMU_MODEL_H
#define DDPCHECK_EMU_MODEL_H

#include <stdbool.h>
#include <stdint.h>

struct emu_device;

/* Whether anything is modelled at all: everything below is for nothing if not. */
bool emu_model_is_on(void);

/* The time, or 0 if nothing is modelled. */
uint64_t emu_model_now(void);

/* A wait of at most `ns` on the calling thread, which ends early when `stopped` (may be NULL). */
void emu_model_wait(uint64_t ns, bool (*stopped)(const void *context), const void *context);

/* Of the calling thread. A GPU runs a kernel to its end, but other programs keep a stream's thread
 * from running: in recorded times only this counts. */
uint64_t emu_model_processor_ns(void);

/* What a device did alone since `begin_ns` (of emu_model_now), as one piece of work: waits until it
 * would have done it with its modelled speed. */
void emu_model_work(const struct emu_device *device, uint64_t begin_ns);
/* The same for a kernel, which has a least time and before which the device may pause. Launched at
 * (emu_model_now; 0: not known), it is shortened by what the previous kernel overran. Returns
 * how long it lasted since `processor_ns`, as a GPU would. */
uint64_t emu_model_kernel_begins(const struct emu_device *device);
uint64_t emu_model_kernel_ends(const struct emu_device *device, uint64_t begin_ns,
                               uint64_t processor_ns, uint64_t launched_ns);

/* Operations of NCCL that are launched together: the device may pause before them. */
void emu_model_operation_begins(const struct emu_device *device);

/* How long `bytes` take between two devices: 0 if their link is not modelled. It is counted as
 * spent by the caller's process. */
uint64_t emu_model_transfer_ns(int from, int to, uint64_t bytes);
void emu_model_count_transfer(uint64_t ns);

/* A call that gives a device work: the host may pause first. */
void emu_model_host_call(const struct emu_device *device);

#endif
