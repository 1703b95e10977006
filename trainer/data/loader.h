/* loader.h: brings the batches of this rank to the device. */
#ifndef DDPTRAIN_LOADER_H
#define DDPTRAIN_LOADER_H

#include "lib/base/error.h"
#include "trainer/data/dataset.h"
#include "trainer/data/sampler.h"
#include "trainer/tensor.h"

struct data_batch {
    struct tensor *images; /* [n][1][image][image], on the tape */
    const int32_t *labels; /* n, in device memory, until the next batch */
    int n;
    uint64_t first_place; /* counts this rank's images over all epochs: place i of a batch is
                             first_place + i */
};

struct loader {
    const struct dataset *dataset;
    struct sampler *sampler;
    struct device *device;
    int batch;
    float *pixels; /* pinned host memory: one batch */
    int32_t *labels;
    int32_t *device_labels;
};

/* The data set and the sampler must outlive the loader. Returns 0, or -1 with a message if the data
 * do not give one batch to each rank. */
int loader_open(struct loader *loader, const struct dataset *dataset, struct sampler *sampler,
                struct device *device, int batch, struct error *err);
void loader_close(struct loader *loader);
int loader_batches_per_epoch(const struct loader *loader);
/* The batch of an iteration, counted from 0 over all epochs; moves the sampler to that iteration's
 * epoch. The copies are enqueued on the compute stream; the host memory is reused by the next call,
 * before which the stream must have been waited for. */
struct data_batch loader_read(struct loader *loader, int iteration);

/* The i-th of `parts` equal parts of a batch, a view on the tape. */
struct data_batch batch_part(const struct data_batch *batch, int i, int parts);

#endif
