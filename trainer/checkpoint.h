/* checkpoint.h: saves and restores the state of a training run.
 *
 * A file holds the iteration reached (from which the sampler's epoch and place and all random
 * numbers follow), the loss scaler's state, each module's parameters and buffers, each optimizer's
 * moments and step, and a CRC-32 over all. It is written under a temporary name, fsynced and
 * renamed, so that a crash leaves either the old file or the new one.
 *
 * Layout, little-endian: "DDPTRAIN", u32 version, u32 iteration, f32 loss scale, u32 steps since it
 * changed, u32 length and the text of the configuration, u32 sections; per section u32 step, u32
 * tensors, and per tensor u32 length and name, u64 count, floats; u32 CRC. */
#ifndef DDPTRAIN_CHECKPOINT_H
#define DDPTRAIN_CHECKPOINT_H

#include "lib/base/error.h"
#include "trainer/optimizer.h"

/* How far the run has come. The scaler's state is that of scaler.h. */
struct checkpoint_progress {
    int iteration;
    float loss_scale;
    int steps_without_overflow;
};

struct checkpoint_section {
    struct module *module;
    struct optimizer *optimizer;
};

/* Both return 0, or -1 with a message. `configuration` describes what must be equal for a run to go
 * on; loading refuses a file with another one, a damaged file and one that does not fit the
 * modules, before it changes anything. */
int checkpoint_save(const char *path, const char *configuration,
                    const struct checkpoint_progress *progress,
                    const struct checkpoint_section *sections, int count, struct error *err);
int checkpoint_load(const char *path, const char *configuration,
                    struct checkpoint_progress *progress, const struct checkpoint_section *sections,
                    int count, struct error *err);

#endif
