/* tensor.c: creates, views, fills and copies tensors. */
#include "trainer/tensor.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "trainer/check.h"
#include "trainer/trace_ranges.h"

struct tensor_shape shape_1d(int a)
{
    return (struct tensor_shape){.dimensions = 1, .size = {a}};
}

struct tensor_shape shape_2d(int a, int b)
{
    return (struct tensor_shape){.dimensions = 2, .size = {a, b}};
}

struct tensor_shape shape_4d(int a, int b, int c, int d)
{
    return (struct tensor_shape){.dimensions = 4, .size = {a, b, c, d}};
}

size_t shape_count(const struct tensor_shape *shape)
{
    size_t count = 1;
    for (int i = 0; i < shape->dimensions; i++)
        count *= (size_t)shape->size[i];
    return count;
}

char *shape_text(const struct tensor_shape *shape, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < shape->dimensions && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%d", i ? "x" : "", shape->size[i]);
    return text;
}

static struct storage *storage_new(struct device *device, size_t count)
{
    struct storage *storage = allocate(1, sizeof *storage);
    *storage = (struct storage){.device = device, .count = count, .references = 1};
    storage->data = device_take(device, count * sizeof(float));
    return storage;
}

void storage_retain(struct storage *storage)
{
    storage->references++;
}

void storage_release(struct storage *storage)
{
    if (--storage->references > 0)
        return;
    if (storage->foreign)
        CHECK_CUDA(cudaFree(storage->data));
    else
        device_give_back(storage->device, storage->data, storage->count * sizeof(float));
    free(storage);
}

struct tensor *tensor_new(struct device *device, struct tensor_shape shape)
{
    struct tensor *tensor = allocate(1, sizeof *tensor);
    tensor->shape = shape;
    tensor->storage = storage_new(device, shape_count(&shape));
    return tensor;
}

struct tensor *tensor_new_on_tape(struct device *device, struct tensor_shape shape)
{
    struct tensor *tensor = tensor_new(device, shape);
    device_tape_tensor(device, tensor);
    return tensor;
}

struct tensor *tensor_view(const struct tensor *base, size_t offset, struct tensor_shape shape)
{
    if (offset + shape_count(&shape) > tensor_count(base))
        fatal("a view of %zu floats at %zu does not fit into a tensor of %zu", shape_count(&shape),
              offset, tensor_count(base));
    struct tensor *view = allocate(1, sizeof *view);
    view->shape = shape;
    view->offset = base->offset + offset;
    view->storage = base->storage;
    storage_retain(view->storage);
    return view;
}

void tensor_free(struct tensor *tensor)
{
    if (!tensor)
        return;
    storage_release(tensor->storage);
    free(tensor);
}

void tensor_wrote_in_place(struct tensor *tensor)
{
    tensor->storage->version++;
    if (tensor->storage->saves)
        mark_modified(tensor->storage, tensor->storage->version);
}

void tensor_fill(struct tensor *tensor, float value)
{
    CHECK_CUDA(kernels_fill(tensor_count(tensor), value, tensor_data(tensor),
                            tensor_device(tensor)->stream));
    tensor_wrote_in_place(tensor);
}

void tensor_upload(struct tensor *tensor, const float *values)
{
    struct device *device = tensor_device(tensor);
    CHECK_CUDA(cudaMemcpyAsync(tensor_data(tensor), values, tensor_count(tensor) * sizeof(float),
                               cudaMemcpyHostToDevice, device->stream));
    device_wait_for_compute(device);
    tensor_wrote_in_place(tensor);
}

void tensor_download(const struct tensor *tensor, float *values)
{
    struct device *device = tensor_device(tensor);
    CHECK_CUDA(cudaMemcpyAsync(values, tensor_data(tensor), tensor_count(tensor) * sizeof(float),
                               cudaMemcpyDeviceToHost, device->stream));
    device_wait_for_compute(device);
}

void tensor_move_to_device(struct tensor *tensor, int index)
{
    struct device *device = tensor_device(tensor);
    size_t bytes = tensor_count(tensor) * sizeof(float);
    struct storage *moved = allocate(1, sizeof *moved);
    *moved = (struct storage){
        .device = device, .count = tensor_count(tensor), .references = 1, .foreign = true};

    device_wait_for_compute(device);
    CHECK_CUDA(cudaSetDevice(index));
    CHECK_CUDA(cudaMalloc((void **)&moved->data, bytes));
    CHECK_CUDA(cudaMemcpyPeer(moved->data, index, tensor_data(tensor), device->index, bytes));
    CHECK_CUDA(cudaSetDevice(device->index));

    storage_release(tensor->storage);
    tensor->storage = moved;
    tensor->offset = 0;
}
