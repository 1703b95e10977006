/* device.c: the device's stream, its cache of memory blocks, and the tape of a batch. */
#include "trainer/device.h"

#include <stdlib.h>

#include "trainer/autograd.h"
#include "trainer/check.h"
#include "trainer/tensor.h"

struct device_block {
    struct device_block *next;
    void *memory;
};

enum { SMALLEST_CLASS = 9 }; /* 512 bytes, the alignment cudaMalloc gives */

static int size_class_of(size_t bytes)
{
    int size_class = SMALLEST_CLASS;
    while (((size_t)1 << size_class) < bytes)
        size_class++;
    return size_class;
}

void device_open(struct device *device, int index)
{
    *device = (struct device){.index = index, .check_versions = true, .loss_scale = 1.0f};
    CHECK_CUDA(cudaSetDevice(index));
    CHECK_CUDA(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking));
}

void device_close(struct device *device)
{
    device_end_batch(device);
    device_wait_for_compute(device);
    for (int size_class = 0; size_class < DEVICE_SIZE_CLASSES; size_class++) {
        while (device->free_blocks[size_class]) {
            struct device_block *block = device->free_blocks[size_class];
            device->free_blocks[size_class] = block->next;
            CHECK_CUDA(cudaFree(block->memory));
            free(block);
        }
    }
    CHECK_CUDA(cudaStreamDestroy(device->stream));
    free(device->tensors);
    free(device->nodes);
}

void device_end_batch(struct device *device)
{
    for (size_t i = 0; i < device->node_count; i++)
        node_free(device->nodes[i]);
    for (size_t i = 0; i < device->tensor_count; i++)
        tensor_free(device->tensors[i]);
    device->node_count = device->tensor_count = 0;
}

void *device_take(struct device *device, size_t bytes)
{
    int size_class = size_class_of(bytes);
    struct device_block *block = device->free_blocks[size_class];
    void *memory = NULL;
    if (!block) {
        CHECK_CUDA(cudaMalloc(&memory, (size_t)1 << size_class));
        return memory;
    }
    device->free_blocks[size_class] = block->next;
    memory = block->memory;
    free(block);
    return memory;
}

void device_give_back(struct device *device, void *memory, size_t bytes)
{
    struct device_block *block = allocate(1, sizeof *block);
    int size_class = size_class_of(bytes);
    *block = (struct device_block){.next = device->free_blocks[size_class], .memory = memory};
    device->free_blocks[size_class] = block;
}

void device_wait_for_compute(struct device *device)
{
    CHECK_CUDA(cudaStreamSynchronize(device->stream));
}

/* Makes room for one more pointer in a growing array. */
static void *grow_tape(void *array, size_t count, size_t *room)
{
    if (count < *room)
        return array;
    *room = *room ? 2 * *room : 256;
    array = realloc(array, *room * sizeof(void *));
    if (!array)
        fatal("out of host memory for the tape of a batch (%zu entries)", *room);
    return array;
}

void device_tape_tensor(struct device *device, struct tensor *tensor)
{
    device->tensors = grow_tape(device->tensors, device->tensor_count, &device->tensor_room);
    device->tensors[device->tensor_count++] = tensor;
}

void device_tape_node(struct device *device, struct node *node)
{
    device->nodes = grow_tape(device->nodes, device->node_count, &device->node_room);
    device->nodes[device->node_count++] = node;
}
