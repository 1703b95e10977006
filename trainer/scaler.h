/* scaler.h: dynamic loss scaling, which keeps small gradients from vanishing in fp16 (Micikevicius
 * et al. 2018, "Mixed Precision Training", section 3.2; the rule is that of PyTorch's GradScaler).
 *
 * Backward starts with `scale` instead of 1, so all gradients are larger by that; they are divided
 * by it, in fp32, after their reduction. Where a value got too large for fp16, some rank's rounding
 * has set its overflow flag (device.h): then no rank may step, since the reduction has brought the
 * infinity to all. The ranks agree on that before each step, for a rank sees only its own
 * roundings. After an iteration with an overflow the scale is halved, after `growth_interval`
 * iterations in a row without one it is doubled.
 *
 * Switched off (fp32; bf16, which has the exponents of fp32) it does nothing and lets every step be
 * made. */
#ifndef DDPTRAIN_SCALER_H
#define DDPTRAIN_SCALER_H

#include <stdbool.h>

#include "trainer/communicator.h"
#include "trainer/module.h"
#include "trainer/reducer.h"

enum { SCALER_MAX_DEVICES = 64 };

struct scaler_settings {
    bool on;
    float first_scale;
    int growth_interval;
    bool agrees; /* false: each rank looks at its own flag only, the mistake of amp-skip */
};

struct scaler {
    struct scaler_settings settings;
    struct device
        *devices[SCALER_MAX_DEVICES]; /* the rank's; more than one where a process drives several */
    int device_count;
    enum precision precision;
    struct communicator *communicator;
    float scale;
    int steps_without_overflow; /* iterations since the last overflow or growth */
    bool overflowed;            /* in this iteration */
};

/* Sets the device's precision, gives it its overflow flag and, if on, the first scale. */
void scaler_open(struct scaler *scaler, struct device *device, struct communicator *communicator,
                 enum precision precision, const struct scaler_settings *settings);
void scaler_close(struct scaler *scaler);
/* The same for another device of this process, until it is dropped: what overflows on any counts
 * for all. */
void scaler_add_device(struct scaler *scaler, struct device *device);
void scaler_drop_device(struct scaler *scaler, struct device *device);

/* After the reduction, before anything else is done with the gradients: true if a step may be made;
 * they are then divided by the scale. Collective; blocks the host until the flag is known. */
bool scaler_unscale(struct scaler *scaler, struct reducer *reducer);
/* The two halves of that: whether a step may be made, and the division. */
bool scaler_agrees_to_step(struct scaler *scaler);
void scaler_divide(const struct scaler *scaler, struct gradients *gradients);
/* Not collective: whether nothing has overflowed on this rank so far. */
bool scaler_is_finite_here(struct scaler *scaler);
/* For a rank without data: takes part in scaler_unscale() of the others. */
void scaler_shadow(struct scaler *scaler);
/* After an iteration: moves the scale. */
void scaler_update(struct scaler *scaler, int iteration);
/* Goes on with the state that a checkpoint has kept. */
void scaler_restore(struct scaler *scaler, float scale, int steps_without_overflow);

#endif
