/* cudnn_rnn.c: where cuDNN keeps the weights of a recurrent network: programs ask it, and lay out
 * their own parameters there. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emu/math/words.h"

enum { STATUS_ALLOC_FAILED = 1002, STATUS_BAD_PARAM = 2000, DIMENSIONS_MAX = 8 };
enum { CELL_LSTM = 2, CELL_GRU = 3 };    /* cudnnRNNMode_t */
enum { BIAS_NONE = 0, BIAS_DOUBLE = 2 }; /* cudnnRNNBiasMode_t: 1 and 3 have one of two */
enum { DROPOUT_STATE_BYTES = 512 };

struct tensor_layout {
    int type, count;
    int dimensions[DIMENSIONS_MAX], strides[DIMENSIONS_MAX];
};

struct rnn_layout {
    int cell, bias, type;
    size_t directions, input, hidden, projected, layers;
};

static size_t element_bytes(int type)
{
    static const size_t bytes[] = {4, 8, 2, 1, 4, 4, 1, 4, 32, 2, 8}; /* cudnnDataType_t */

    return type >= 0 && (size_t)type < sizeof bytes / sizeof bytes[0] ? bytes[type] : 4;
}

int cudnnDropoutGetStatesSize(void *handle, size_t *bytes);
int cudnnDropoutGetStatesSize(void *handle, size_t *bytes)
{
    (void)handle;
    words_set_size(bytes, DROPOUT_STATE_BYTES);
    return 0;
}

int cudnnCreateTensorDescriptor(struct tensor_layout **tensor);
int cudnnCreateTensorDescriptor(struct tensor_layout **tensor)
{
    *tensor = calloc(1, sizeof(**tensor));
    return *tensor ? 0 : STATUS_ALLOC_FAILED;
}

int cudnnDestroyTensorDescriptor(struct tensor_layout *tensor);
int cudnnDestroyTensorDescriptor(struct tensor_layout *tensor)
{
    free(tensor);
    return 0;
}

int cudnnSetTensorNdDescriptor(struct tensor_layout *tensor, int type, int count,
                               const int *dimensions, const int *strides);
int cudnnSetTensorNdDescriptor(struct tensor_layout *tensor, int type, int count,
                               const int *dimensions, const int *strides)
{
    if (!tensor || count < 0 || count > DIMENSIONS_MAX)
        return STATUS_BAD_PARAM;
    tensor->type = type;
    tensor->count = count;
    memcpy(tensor->dimensions, dimensions, (size_t)count * sizeof(int));
    memcpy(tensor->strides, strides, (size_t)count * sizeof(int));
    return 0;
}

int cudnnGetTensorNdDescriptor(const struct tensor_layout *tensor, int requested, int *type,
                               int *count, int *dimensions, int *strides);
int cudnnGetTensorNdDescriptor(const struct tensor_layout *tensor, int requested, int *type,
                               int *count, int *dimensions, int *strides)
{
    int given = requested < tensor->count ? requested : tensor->count;

    words_set_int(type, tensor->type);
    words_set_int(count, tensor->count);
    for (int i = 0; i < given; i++) {
        dimensions[i] = tensor->dimensions[i];
        strides[i] = tensor->strides[i];
    }
    return 0;
}

int cudnnCreateRNNDescriptor(struct rnn_layout **rnn);
int cudnnCreateRNNDescriptor(struct rnn_layout **rnn)
{
    *rnn = calloc(1, sizeof(**rnn));
    return *rnn ? 0 : STATUS_ALLOC_FAILED;
}

int cudnnDestroyRNNDescriptor(struct rnn_layout *rnn);
int cudnnDestroyRNNDescriptor(struct rnn_layout *rnn)
{
    free(rnn);
    return 0;
}

/* Its arguments: descriptor, algorithm, cell, bias, direction, input mode, type, precision, math
 * type, sizes of input, hidden state and projection, layers, dropout, flags. */
int cudnnSetRNNDescriptor_v8(WORD_PARAMETERS);
int cudnnSetRNNDescriptor_v8(WORD_PARAMETERS)
{
    void *const words[] = {WORDS};
    int number[13];

    for (int i = 0; i < 13; i++)
        number[i] = (int)(intptr_t)words[i];
    *(struct rnn_layout *)words[0] = (struct rnn_layout){
        .cell = number[2],
        .bias = number[3],
        .directions = number[4] ? 2 : 1,
        .type = number[6],
        .input = (size_t)number[9],
        .hidden = (size_t)number[10],
        .projected = (size_t)number[11],
        .layers = (size_t)number[12],
    };
    return 0;
}

static size_t gates(const struct rnn_layout *rnn)
{
    if (rnn->cell == CELL_LSTM)
        return 4;
    return rnn->cell == CELL_GRU ? 3 : 1;
}

/* How many values a step of a layer gives: a projection is smaller than the hidden state. */
static size_t output_width(const struct rnn_layout *rnn)
{
    return rnn->projected ? rnn->projected : rnn->hidden;
}

static size_t input_width(const struct rnn_layout *rnn, size_t layer)
{
    return layer < rnn->directions ? rnn->input : output_width(rnn) * rnn->directions;
}

static bool has_projection(const struct rnn_layout *rnn)
{
    return rnn->projected && rnn->projected != rnn->hidden;
}

/* The weights of a layer (one for each direction): of the input, of the state, the projection. */
static size_t layer_weights(const struct rnn_layout *rnn, size_t layer)
{
    size_t widths = input_width(rnn, layer) + output_width(rnn);

    return gates(rnn) * rnn->hidden * widths +
           (has_projection(rnn) ? rnn->projected * rnn->hidden : 0);
}

static size_t layer_biases(const struct rnn_layout *rnn)
{
    size_t each = gates(rnn) * rnn->hidden;

    if (rnn->bias == BIAS_NONE)
        return 0;
    return rnn->bias == BIAS_DOUBLE ? 2 * each : each;
}

/* All weights come before all biases. */
static size_t weights_before(const struct rnn_layout *rnn, size_t layer)
{
    size_t count = 0;

    for (size_t i = 0; i < layer; i++)
        count += layer_weights(rnn, i);
    return count;
}

int cudnnGetRNNWeightSpaceSize(void *handle, const struct rnn_layout *rnn, size_t *bytes);
int cudnnGetRNNWeightSpaceSize(void *handle, const struct rnn_layout *rnn, size_t *bytes)
{
    size_t layers = rnn->layers * rnn->directions;
    size_t count = weights_before(rnn, layers) + layers * layer_biases(rnn);

    (void)handle;
    words_set_size(bytes, count * element_bytes(rnn->type));
    return 0;
}

/* Rows that are 0: there is no such matrix. A caller that does not want the layout passes NULL. */
static void describe_tensor(struct tensor_layout *tensor, int type, size_t rows, size_t columns)
{
    if (tensor)
        *tensor = (struct tensor_layout){
            .type = type,
            .count = rows ? 3 : 0,
            .dimensions = {1, (int)rows, (int)columns},
            .strides = {(int)(rows * columns), (int)columns, 1},
        };
}

/* `number` counts the gates' matrices: of the input, then of the state; the projection is last. */
int cudnnGetRNNWeightParams(void *handle, const struct rnn_layout *rnn, int layer, size_t bytes,
                            char *space, int number, struct tensor_layout *matrix, void **weights,
                            struct tensor_layout *vector, void **bias);
int cudnnGetRNNWeightParams(void *handle, const struct rnn_layout *rnn, int layer, size_t bytes,
                            char *space, int number, struct tensor_layout *matrix, void **weights,
                            struct tensor_layout *vector, void **bias)
{
    size_t count = gates(rnn), id = (size_t)number, at = (size_t)layer;
    size_t layers = rnn->layers * rnn->directions, unit = element_bytes(rnn->type);
    size_t rows = rnn->hidden, columns = id < count ? input_width(rnn, at) : output_width(rnn);
    size_t offset = weights_before(rnn, at);
    size_t bias_offset = weights_before(rnn, layers) + at * layer_biases(rnn) + id * rnn->hidden;
    bool projection = id >= 2 * count, has_matrix = !projection || has_projection(rnn);
    bool has_bias = !projection && (id + 1) * rnn->hidden <= layer_biases(rnn);

    (void)handle, (void)bytes;
    if (id < count)
        offset += id * rows * columns;
    else
        offset += count * rows * input_width(rnn, at) + (id - count) * rows * columns;
    if (projection) {
        rows = rnn->projected;
        columns = rnn->hidden;
    }
    describe_tensor(matrix, rnn->type, has_matrix ? rows : 0, columns);
    describe_tensor(vector, rnn->type, has_bias ? rnn->hidden : 0, 1);
    if (weights)
        *weights = has_matrix ? space + offset * unit : NULL;
    if (bias)
        *bias = has_bias ? space + bias_offset * unit : NULL;
    return 0;
}
