/* autograd.h: reverse-mode differentiation over the operations of operations.h.
 *
 * Each operation on a tensor that needs a gradient leaves a node on the tape: how to get from the
 * gradient of its output to those of its inputs, and what it saved for that. autograd_backward()
 * walks the nodes from the newest to the oldest, which is a topological order because an operation
 * is always newer than its inputs.
 *
 * What was saved must not change before it is used. A node remembers the version of each saved
 * storage; when a version has moved on, an operation in place destroyed what backward needs, and
 * autograd_backward() says so instead of computing a wrong gradient (unless device->check_versions
 * is off). */
#ifndef DDPTRAIN_AUTOGRAD_H
#define DDPTRAIN_AUTOGRAD_H

#include "kernels/kernels.h"
#include "lib/base/error.h"
#include "trainer/tensor.h"

enum { NODE_MAX_INPUTS = 3, NODE_MAX_SAVED = 4 };

/* Where the gradient of an input goes: to the node that computed it, to a leaf, or nowhere. */
struct edge {
    struct node *node;
    struct tensor *leaf;
};

/* A tensor kept for backward. It holds the storage, not the tensor: a node may save its own output.
 */
struct saved {
    struct storage *storage;
    size_t offset;
    struct tensor_shape shape;
    uint32_t version;
    const char *producer; /* operation that computed it, or the name of a leaf */
};

struct node;

struct tensor_operation {
    const char *name;
    /* Computes g_inputs[i], tensors on the tape, for each input that node_wants() a gradient. */
    void (*backward)(struct node *node, const struct tensor *g_output, struct tensor **g_inputs);
};

struct node {
    const struct tensor_operation *operation;
    uint64_t sequence;
    uint64_t reached_in; /* backward pass that found it */
    struct edge inputs[NODE_MAX_INPUTS];
    struct saved saved[NODE_MAX_SAVED];
    struct tensor *g_output; /* sum of the contributions so far, on the tape */
    bool used;               /* its saved tensors were given back after a backward pass */
    union {                  /* what the operation needs beside tensors */
        struct {
            struct conv2d convolution;
            struct kernels_activation activation;
        };
        struct {
            int n, in, out;
        } linear;
        struct {
            int n, channels, pixels;
        } batch_norm;
        struct {
            float slope;
        } leaky_relu;
        struct {
            float target;
        } loss;
        struct {
            const int32_t *labels;
            int n, classes;
        } cross_entropy;
    };
};

/* Makes `output` the result of an operation on the inputs (NULL: no such input). Returns the node,
 * owned by the tape, for the operation to save tensors in, or NULL if no input needs a gradient. */
struct node *node_record(const struct tensor_operation *operation, struct tensor *output,
                         struct tensor *const *inputs, int input_count);
/* Keeps `tensor` as it is now for the backward pass. */
void node_save(struct node *node, int slot, const struct tensor *tensor);
float *node_saved_data(const struct node *node, int slot);
bool node_wants(const struct node *node, int input);
/* Frees a node of the tape. */
void node_free(struct node *node);

/* Adds d loss / d leaf to the gradient of every leaf that requires one, and calls a leaf's hook as
 * soon as its gradient is complete, while the walk goes on. `loss` is a single number. The saved
 * tensors are given back on the way. Returns 0, or -1 with a message when a saved tensor was
 * changed or is gone. Everything is launched on the compute stream; nothing waits. */
int autograd_backward(struct tensor *loss, struct error *err);
/* The same from an output of any size whose gradient is known: the rest of a model whose end is
 * elsewhere. */
int autograd_backward_from(struct tensor *output, const struct tensor *gradient, struct error *err);

/* Calls visit for each use of a leaf (the same leaf perhaps several times) that backward from the
 * outputs would reach. count > 0. */
void autograd_visit_leaves(struct tensor *const *outputs, int count,
                           void (*visit)(void *owner, struct tensor *leaf), void *owner);

#endif
