/* device.h: the GPU of this rank: its compute stream, a cache of its memory, and the tape of the
 * batch.
 *
 * cudaMalloc and cudaFree wait for the whole device, so memory is asked for once and kept: a block
 * that is given back is handed out again, in power-of-two sizes. That is safe without waiting
 * because all users of the cache work on the one compute stream (what another stream uses must
 * outlive its use there).
 *
 * The tape owns every tensor and node that operations make while a batch is computed;
 * device_end_batch() drops them together, so that models read like formulas. Not thread-safe: one
 * host thread drives a rank. */
#ifndef DDPTRAIN_DEVICE_H
#define DDPTRAIN_DEVICE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tensor;
struct node;
struct device_block;

enum { DEVICE_SIZE_CLASSES = 48 };

/* What convolutions and linear layers compute in; everything else, parameters included, is fp32. */
enum precision { PRECISION_FP32, PRECISION_FP16, PRECISION_BF16 };

struct device {
    int index;                                             /* CUDA's number */
    cudaStream_t stream;                                   /* where all computation goes */
    struct device_block *free_blocks[DEVICE_SIZE_CLASSES]; /* by log2 of their bytes */
    struct tensor **tensors;                               /* the tape */
    size_t tensor_count, tensor_room;
    struct node **nodes;
    size_t node_count, node_room;
    uint64_t sequence; /* of the newest node */
    uint64_t backward_passes;
    enum precision precision;
    int32_t *overflow;   /* device memory: set to 1 by a rounding to inf or NaN (scaler.h) */
    float loss_scale;    /* the gradient that backward starts with; 1 without loss scaling */
    bool check_versions; /* refuse to use saved tensors that changed (autograd.h) */
};

/* Makes CUDA device `index` current for this thread and creates the compute stream. */
void device_open(struct device *device, int index);
/* Ends the batch, frees the cache and the stream. Tensors outside the tape must be freed before. */
void device_close(struct device *device);
/* Frees every tensor and node that the tape owns. */
void device_end_batch(struct device *device);

/* At least `bytes` bytes of device memory with undefined contents; owned by the caller until
 * device_give_back(). */
void *device_take(struct device *device, size_t bytes);
/* Gives back what device_take(device, bytes) returned. */
void device_give_back(struct device *device, void *memory, size_t bytes);

/* Blocks the host until the compute stream has done all it was given. */
void device_wait_for_compute(struct device *device);

/* Puts a new tensor or node on the tape, which owns it from then on. */
void device_tape_tensor(struct device *device, struct tensor *tensor);
void device_tape_node(struct device *device, struct node *node);

#endif
