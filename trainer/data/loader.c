/* loader.c: copies the next batch to the device. */
#include "trainer/data/loader.h"

#include "trainer/check.h"

int loader_open(struct loader *loader, const struct dataset *dataset, struct sampler *sampler,
                struct device *device, int batch, struct error *err)
{
    if (sampler->per_rank < (size_t)batch)
        return error_set(
            err, "%zu images give %zu to each of %d ranks, which is less than a batch of %d",
            dataset->count, sampler->per_rank, sampler->ranks, batch);
    size_t n = (size_t)batch, pixels = n * (size_t)dataset->image * (size_t)dataset->image;
    *loader =
        (struct loader){.dataset = dataset, .sampler = sampler, .device = device, .batch = batch};
    CHECK_CUDA(cudaMallocHost((void **)&loader->pixels, pixels * sizeof *loader->pixels));
    CHECK_CUDA(cudaMallocHost((void **)&loader->labels, n * sizeof *loader->labels));
    CHECK_CUDA(cudaMalloc((void **)&loader->device_labels, n * sizeof *loader->device_labels));
    return 0;
}

void loader_close(struct loader *loader)
{
    CHECK_CUDA(cudaFreeHost(loader->pixels));
    CHECK_CUDA(cudaFreeHost(loader->labels));
    CHECK_CUDA(cudaFree(loader->device_labels));
}

int loader_batches_per_epoch(const struct loader *loader)
{
    return (int)(loader->sampler->per_rank / (size_t)loader->batch);
}

struct data_batch loader_read(struct loader *loader, int iteration)
{
    const struct dataset *dataset = loader->dataset;
    int per_epoch = loader_batches_per_epoch(loader), epoch = iteration / per_epoch,
        n = loader->batch;
    size_t first = (size_t)(iteration % per_epoch) * (size_t)n,
           pixels = (size_t)dataset->image * (size_t)dataset->image;
    if (loader->sampler->epoch != epoch)
        sampler_set_epoch(loader->sampler, epoch);
    for (int i = 0; i < n; i++)
        dataset->read(dataset, sampler_index(loader->sampler, first + (size_t)i),
                      loader->pixels + (size_t)i * pixels, &loader->labels[i]);

    cudaStream_t stream = loader->device->stream;
    struct data_batch batch = {
        .n = n, .labels = loader->device_labels, .first_place = (uint64_t)iteration * (uint64_t)n};
    batch.images =
        tensor_new_on_tape(loader->device, shape_4d(n, 1, dataset->image, dataset->image));
    CHECK_CUDA(cudaMemcpyAsync(tensor_data(batch.images), loader->pixels,
                               (size_t)n * pixels * sizeof(float), cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaMemcpyAsync(loader->device_labels, loader->labels,
                               (size_t)n * sizeof *loader->labels, cudaMemcpyHostToDevice, stream));
    return batch;
}

struct data_batch batch_part(const struct data_batch *batch, int i, int parts)
{
    const int *size = batch->images->shape.size;
    int n = batch->n / parts;
    struct data_batch part = {.n = n,
                              .labels = batch->labels + i * n,
                              .first_place = batch->first_place + (uint64_t)i * (uint64_t)n};
    struct tensor_shape shape = shape_4d(part.n, size[1], size[2], size[3]);
    part.images = tensor_view(batch->images, (size_t)i * shape_count(&shape), shape);
    device_tape_tensor(tensor_device(part.images), part.images);
    return part;
}
