/* tensor.h: float tensors in device memory, their storage and its version counter.
 *
 * A storage is a piece of device memory with a version that grows with every write in place.
 * Tensors are shapes on a storage; several may share one (views: a gradient inside a bucket, a
 * reshaped activation) and then share its version, because writing through one changes them all.
 * Operations keep the storage of what they save for backward and compare versions later
 * (autograd.h). */
#ifndef DDPTRAIN_TENSOR_H
#define DDPTRAIN_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/device.h"

struct node;

enum { TENSOR_MAX_DIMENSIONS = 4 };

struct tensor_shape {
    int dimensions;
    int size[TENSOR_MAX_DIMENSIONS];
};

struct storage {
    struct device *device;
    float *data;
    size_t count;     /* of floats */
    uint32_t version; /* writes in place so far */
    int references;
    int saves;    /* nodes that keep it for backward */
    bool foreign; /* not from the device's cache: cudaFree when unused */
};

/* Called when the gradient of a leaf has got its last contribution in a backward pass. */
struct gradient_hook {
    void (*call)(void *owner, int index);
    void *owner;
    int index;
};

struct tensor {
    struct storage *storage;
    size_t offset; /* of the first float in the storage */
    struct tensor_shape shape;
    const char *name;        /* for messages; not owned; NULL for an intermediate result */
    bool requires_gradient;  /* a leaf: computed results have a creator instead */
    struct node *creator;    /* the operation that computed it, NULL for leaves */
    struct tensor *gradient; /* of a leaf; owned by the code that set it (reducer.h) */
    bool no_gradient; /* no rank has used this leaf: `gradient` means nothing, optimizers leave it
                         alone */
    struct gradient_hook hook;
    uint64_t counted_in; /* backward pass that `uses_left` belongs to */
    int uses_left;       /* contributions still to come in that pass */
};

struct tensor_shape shape_1d(int a);
struct tensor_shape shape_2d(int a, int b);
struct tensor_shape shape_4d(int a, int b, int c, int d);
size_t shape_count(const struct tensor_shape *shape);
/* Writes "8x16x4x4". Returns text. */
char *shape_text(const struct tensor_shape *shape, char *text, size_t bytes);

/* A tensor with undefined contents, owned by the caller: parameters, buffers, inputs. */
struct tensor *tensor_new(struct device *device, struct tensor_shape shape);
/* The same, owned by the tape: results and intermediate gradients. */
struct tensor *tensor_new_on_tape(struct device *device, struct tensor_shape shape);
/* A tensor on the storage of `base`, from its float number `offset` on, owned by the caller. */
struct tensor *tensor_view(const struct tensor *base, size_t offset, struct tensor_shape shape);
/* Frees a tensor of the caller's; the storage goes with its last user. NULL is fine. */
void tensor_free(struct tensor *tensor);

void storage_retain(struct storage *storage);
void storage_release(struct storage *storage);

static inline size_t tensor_count(const struct tensor *tensor)
{
    return shape_count(&tensor->shape);
}

static inline float *tensor_data(const struct tensor *tensor)
{
    return tensor->storage->data + tensor->offset;
}

static inline struct device *tensor_device(const struct tensor *tensor)
{
    return tensor->storage->device;
}

/* To be called by everything that writes into an existing tensor in place. */
void tensor_wrote_in_place(struct tensor *tensor);

/* Sets every element, in place, on the compute stream. */
void tensor_fill(struct tensor *tensor, float value);
/* Copies between device and pageable host memory; both wait until the copy is done. */
void tensor_upload(struct tensor *tensor, const float *values);
void tensor_download(const struct tensor *tensor, float *values);
/* Moves the storage of `tensor` to another device, whose compute stream stays the old one's: the
 * mistake of the wrong-device fault. Views of the same storage keep the old memory. */
void tensor_move_to_device(struct tensor *tensor, int index);

#endif
