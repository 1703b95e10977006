/* autograd.c: the backward pass: visits operations from the loss back and adds up gradients. */
#include "trainer/autograd.h"

#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/trace_ranges.h"

/* True if a gradient has to flow back to the tensor. */
static bool tensor_needs_gradient(const struct tensor *tensor)
{
    return tensor && (tensor->creator || tensor->requires_gradient);
}

struct node *node_record(const struct tensor_operation *operation, struct tensor *output,
                         struct tensor *const *inputs, int input_count)
{
    bool needed = false;
    for (int i = 0; i < input_count; i++)
        needed |= tensor_needs_gradient(inputs[i]);
    if (!needed)
        return NULL;

    struct device *device = tensor_device(output);
    struct node *node = allocate(1, sizeof *node);
    node->operation = operation;
    node->sequence = ++device->sequence;
    for (int i = 0; i < input_count; i++) {
        if (!tensor_needs_gradient(inputs[i]))
            continue;
        node->inputs[i].node = inputs[i]->creator;
        node->inputs[i].leaf = inputs[i]->creator ? NULL : inputs[i];
    }
    device_tape_node(device, node);
    output->creator = node;
    return node;
}

void node_save(struct node *node, int slot, const struct tensor *tensor)
{
    const char *producer = tensor->creator ? tensor->creator->operation->name : tensor->name;
    node->saved[slot] = (struct saved){.storage = tensor->storage,
                                       .offset = tensor->offset,
                                       .shape = tensor->shape,
                                       .version = tensor->storage->version,
                                       .producer = producer ? producer : "an input"};
    storage_retain(tensor->storage);
    tensor->storage->saves++;
    mark_saved(tensor->storage, tensor->storage->version, node->saved[slot].producer,
               node->operation->name);
}

float *node_saved_data(const struct node *node, int slot)
{
    return node->saved[slot].storage->data + node->saved[slot].offset;
}

bool node_wants(const struct node *node, int input)
{
    return node->inputs[input].node || node->inputs[input].leaf;
}

static void release_saved(struct node *node)
{
    for (int i = 0; i < NODE_MAX_SAVED; i++) {
        if (node->saved[i].storage) {
            node->saved[i].storage->saves--;
            storage_release(node->saved[i].storage);
        }
        node->saved[i].storage = NULL;
    }
    node->used = true;
}

void node_free(struct node *node)
{
    release_saved(node);
    free(node);
}

/* --- the walk --- */

struct backward_walk {
    struct node **nodes;
    size_t count, room;
    uint64_t pass;
    void (*leaf)(void *owner, struct tensor *leaf); /* for each use of a leaf */
    void *owner;
};

static void walk_reach(struct backward_walk *walk, struct node *node)
{
    if (node->reached_in == walk->pass)
        return;
    node->reached_in = walk->pass;
    if (walk->count == walk->room) {
        walk->room = walk->room ? 2 * walk->room : 64;
        walk->nodes = realloc(walk->nodes, walk->room * sizeof *walk->nodes);
        if (!walk->nodes)
            fatal("out of host memory for a backward pass over %zu nodes", walk->room);
    }
    walk->nodes[walk->count++] = node;
}

/* Counts how many contributions each leaf will get, so that its hook is called after the last one.
 */
static void count_use(void *owner, struct tensor *leaf)
{
    const struct backward_walk *walk = owner;
    if (leaf->counted_in != walk->pass) {
        leaf->counted_in = walk->pass;
        leaf->uses_left = 0;
    }
    leaf->uses_left++;
}

static int newest_first(const void *a, const void *b)
{
    uint64_t left = (*(struct node *const *)a)->sequence,
             right = (*(struct node *const *)b)->sequence;
    return (left < right) - (left > right);
}

/* Finds all nodes that those reached so far depend on. The list is its own queue: what is found is
 * looked at later. */
static void walk_find(struct backward_walk *walk)
{
    for (size_t i = 0; i < walk->count; i++) {
        for (int k = 0; k < NODE_MAX_INPUTS; k++) {
            struct edge *edge = &walk->nodes[i]->inputs[k];
            if (edge->node)
                walk_reach(walk, edge->node);
            if (edge->leaf)
                walk->leaf(walk->owner, edge->leaf);
        }
    }
}

void autograd_visit_leaves(struct tensor *const *outputs, int count,
                           void (*visit)(void *owner, struct tensor *leaf), void *owner)
{
    struct backward_walk walk = {
        .pass = ++tensor_device(outputs[0])->backward_passes, .leaf = visit, .owner = owner};
    for (int i = 0; i < count; i++)
        if (outputs[i]->creator)
            walk_reach(&walk, outputs[i]->creator);
    walk_find(&walk);
    free(walk.nodes);
}

static void announce_use(const struct node *node)
{
    for (int i = 0; i < NODE_MAX_SAVED; i++) {
        const struct saved *saved = &node->saved[i];
        if (saved->storage)
            mark_used(saved->storage, saved->storage->version, saved->version, saved->producer,
                      node->operation->name);
    }
}

static int check_saved(const struct node *node, struct error *err)
{
    for (int i = 0; i < NODE_MAX_SAVED; i++) {
        const struct saved *saved = &node->saved[i];
        if (!saved->storage || saved->storage->version == saved->version)
            continue;
        char shape[64];
        return error_set(
            err,
            "a tensor that is needed to compute a gradient was modified by an in-place operation: "
            "the output of %s (%s floats), saved by %s, is at version %u; expected version %u. Use "
            "the "
            "operation's out-of-place form, or apply it in place to a clone",
            saved->producer, shape_text(&saved->shape, shape, sizeof shape), node->operation->name,
            saved->storage->version, saved->version);
    }
    return 0;
}

static void add_gradient_to(struct tensor *sum, const struct tensor *more)
{
    CHECK_CUDA(kernels_add(tensor_count(more), tensor_data(more), tensor_data(sum),
                           tensor_device(sum)->stream));
    tensor_wrote_in_place(sum);
}

/* The first contribution is copied, not adopted: it may share its storage with another edge's. */
static void add_to_node(struct node *node, const struct tensor *gradient)
{
    if (node->g_output) {
        add_gradient_to(node->g_output, gradient);
        return;
    }
    struct device *device = tensor_device(gradient);
    node->g_output = tensor_new_on_tape(device, gradient->shape);
    CHECK_CUDA(cudaMemcpyAsync(tensor_data(node->g_output), tensor_data(gradient),
                               tensor_count(gradient) * sizeof(float), cudaMemcpyDeviceToDevice,
                               device->stream));
}

static void add_to_leaf(struct tensor *leaf, const struct tensor *gradient)
{
    if (!leaf->gradient)
        fatal("parameter %s has no tensor for its gradient", leaf->name ? leaf->name : "(no name)");
    if (gradient)
        add_gradient_to(leaf->gradient, gradient);
    if (--leaf->uses_left == 0 && leaf->hook.call)
        leaf->hook.call(leaf->hook.owner, leaf->hook.index);
}

static void run_node(struct node *node)
{
    struct tensor *g_inputs[NODE_MAX_INPUTS] = {NULL};
    if (node->g_output)
        node->operation->backward(node, node->g_output, g_inputs);
    for (int i = 0; i < NODE_MAX_INPUTS; i++) {
        if (node->inputs[i].node && g_inputs[i])
            add_to_node(node->inputs[i].node, g_inputs[i]);
        if (node->inputs[i].leaf)
            add_to_leaf(node->inputs[i].leaf, g_inputs[i]);
    }
}

/* From a node whose g_output is set. */
static int run_backward(struct node *last, struct device *device, struct error *err)
{
    struct backward_walk walk = {.pass = ++device->backward_passes, .leaf = count_use};
    walk.owner = &walk;
    walk_reach(&walk, last);
    walk_find(&walk);
    qsort(walk.nodes, walk.count, sizeof *walk.nodes, newest_first);

    int status = 0;
    for (size_t i = 0; i < walk.count && status == 0; i++) {
        if (walk.nodes[i]->used)
            status = error_set(
                err,
                "backward through %s a second time: what it saved was given back after the first",
                walk.nodes[i]->operation->name);
        if (status == 0)
            announce_use(walk.nodes[i]);
        if (status == 0 && device->check_versions)
            status = check_saved(walk.nodes[i], err);
        if (status == 0) {
            run_node(walk.nodes[i]);
            release_saved(walk.nodes[i]);
        }
    }
    free(walk.nodes);
    return status;
}

static int check_output(const struct tensor *output, struct error *err)
{
    if (output->creator)
        return 0;
    return error_set(err, "backward of a tensor that no operation on a parameter has computed");
}

int autograd_backward(struct tensor *loss, struct error *err)
{
    struct device *device = tensor_device(loss);
    if (check_output(loss, err) != 0)
        return -1;
    if (tensor_count(loss) != 1)
        return error_set(err, "backward of a tensor of %zu elements: a loss is one number",
                         tensor_count(loss));
    loss->creator->g_output = tensor_new_on_tape(device, loss->shape);
    tensor_fill(loss->creator->g_output, device->loss_scale);
    return run_backward(loss->creator, device, err);
}

int autograd_backward_from(struct tensor *output, const struct tensor *gradient, struct error *err)
{
    if (check_output(output, err) != 0)
        return -1;
    add_to_node(output->creator, gradient);
    return run_backward(output->creator, tensor_device(output), err);
}
