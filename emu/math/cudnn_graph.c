/* cudnn_graph.c: cuDNN's graph interface (backend): PyTorch's convolutions run through it.
 *
 * A descriptor keeps what it takes to launch: which tensors, by their unique ids, an operation
 * reads and writes. A descriptor that is made of others (a graph of operations, an engine of a
 * graph, a plan of an engine) copies what they keep, since programs destroy the originals. Numbers
 * are those of cudnn_graph.h. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emu/math/launch.h"

enum { STATUS_BAD_PARAM = 2000, STATUS_ALLOC_FAILED = 1002, TENSORS_MAX = 24 };
/* cudnnBackendAttributeType_t */
enum { TYPE_INT64 = 3, TYPE_VOID_PTR = 6, TYPE_BACKEND_DESCRIPTOR = 15, TYPE_INT32 = 23 };
/* cudnnBackendAttributeName_t */
enum { TENSOR_UNIQUE_ID = 906, PACK_UNIQUE_IDS = 1000, PACK_DATA_POINTERS = 1001 };
/* cudnnBackendDescriptorType_t, as far as such a graph has a better name than the call's. */
enum { CONVOLUTION_FORWARD = 10, CONVOLUTION_BACKWARD_FILTER, CONVOLUTION_BACKWARD_DATA };

struct descriptor {
    const char *name; /* of the kernel; NULL: the call's */
    int count;
    struct {
        int64_t id;
        void *memory; /* in a variant pack */
        bool written;
    } tensor[TENSORS_MAX];
};

/* The results among an operation's tensors. */
static bool is_result_of_operation(int attribute)
{
    static const struct {
        int first, last;
    } results[] = {
        {705, 705},   {710, 710},   {715, 715},   {753, 753},   {756, 756},   {773, 774},
        {788, 793},   {1522, 1522}, {1611, 1611}, {1626, 1630}, {1711, 1712}, {1720, 1720},
        {1803, 1803}, {1904, 1904}, {1951, 1951}, {2003, 2004}, {2011, 2013}, {2107, 2109},
        {2201, 2201}, {2251, 2251}, {2271, 2271}, {2310, 2310}, {2501, 2502}, {2603, 2603},
    };

    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (attribute >= results[i].first && attribute <= results[i].last)
            return true;
    return false;
}

/* The tensor's place, made if it has none; -1: there are too many. */
static int place_of_tensor(struct descriptor *of, int64_t id)
{
    for (int i = 0; i < of->count; i++)
        if (of->tensor[i].id == id)
            return i;
    if (of->count == TENSORS_MAX)
        return -1;
    of->tensor[of->count].id = id;
    return of->count++;
}

static void take_tensors(struct descriptor *to, const struct descriptor *from, bool written)
{
    if (!from)
        return;
    if (from->name)
        to->name = from->name;
    for (int i = 0; i < from->count; i++) {
        int at = place_of_tensor(to, from->tensor[i].id);

        if (at >= 0)
            to->tensor[at].written |= written || from->tensor[i].written;
    }
}

int cudnnBackendCreateDescriptor(int type, struct descriptor **descriptor);
int cudnnBackendCreateDescriptor(int type, struct descriptor **descriptor)
{
    if (!descriptor)
        return STATUS_BAD_PARAM;
    *descriptor = calloc(1, sizeof(**descriptor));
    if (!*descriptor)
        return STATUS_ALLOC_FAILED;
    if (type == CONVOLUTION_FORWARD)
        (*descriptor)->name = "cudnnConvolutionForward";
    if (type == CONVOLUTION_BACKWARD_FILTER)
        (*descriptor)->name = "cudnnConvolutionBackwardFilter";
    if (type == CONVOLUTION_BACKWARD_DATA)
        (*descriptor)->name = "cudnnConvolutionBackwardData";
    return 0;
}

int cudnnBackendDestroyDescriptor(struct descriptor *descriptor);
int cudnnBackendDestroyDescriptor(struct descriptor *descriptor)
{
    free(descriptor);
    return 0;
}

static void set_unique_id(struct descriptor *descriptor, int attribute, int64_t i, int64_t value)
{
    if (attribute == TENSOR_UNIQUE_ID) {
        descriptor->count = 1;
        descriptor->tensor[0].id = value;
    } else if (attribute == PACK_UNIQUE_IDS) {
        descriptor->tensor[i].id = value;
        descriptor->count = (int)i + 1;
    }
}

int cudnnBackendSetAttribute(struct descriptor *descriptor, int attribute, int type, int64_t count,
                             const void *elements);
int cudnnBackendSetAttribute(struct descriptor *descriptor, int attribute, int type, int64_t count,
                             const void *elements)
{
    if (!descriptor || (count > 0 && !elements))
        return STATUS_BAD_PARAM;
    for (int64_t i = 0; i < count && i < TENSORS_MAX; i++) {
        if (type == TYPE_BACKEND_DESCRIPTOR)
            take_tensors(descriptor, ((struct descriptor *const *)elements)[i],
                         is_result_of_operation(attribute));
        else if (type == TYPE_INT64)
            set_unique_id(descriptor, attribute, i, ((const int64_t *)elements)[i]);
        else if (type == TYPE_VOID_PTR && attribute == PACK_DATA_POINTERS)
            descriptor->tensor[i].memory = ((void *const *)elements)[i];
    }
    return 0;
}

/* One engine for every graph, without notes and knobs; sizes are 0. Of descriptors the caller
 * provides the objects to be filled. */
int cudnnBackendGetAttribute(struct descriptor *descriptor, int attribute, int type,
                             int64_t requested, int64_t *found, void *elements);
int cudnnBackendGetAttribute(struct descriptor *descriptor, int attribute, int type,
                             int64_t requested, int64_t *found, void *elements)
{
    bool number = type == TYPE_INT64 || type == TYPE_INT32;

    (void)attribute;
    if (found)
        *found = number || type == TYPE_BACKEND_DESCRIPTOR;
    if (!elements || requested <= 0)
        return 0;
    if (number)
        memset(elements, 0, type == TYPE_INT64 ? sizeof(int64_t) : sizeof(int32_t));
    if (type == TYPE_BACKEND_DESCRIPTOR && *(struct descriptor **)elements)
        take_tensors(*(struct descriptor **)elements, descriptor, false);
    return 0;
}

int cudnnBackendExecute(void *handle, const struct descriptor *plan, struct descriptor *pack);
int cudnnBackendExecute(void *handle, const struct descriptor *plan, struct descriptor *pack)
{
    struct math_touches touches = {0};

    if (!plan || !pack)
        return STATUS_BAD_PARAM;
    take_tensors(pack, plan, false);
    for (int i = 0; i < pack->count; i++)
        math_add_touch(&touches, pack->tensor[i].written ? 'w' : 'r', pack->tensor[i].memory);
    math_launch(plan->name ? plan->name : "cudnnBackendExecute", &touches,
                math_handle_stream(handle));
    return 0;
}
