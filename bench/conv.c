/* conv.c: measures the trainer's convolutions on a GPU: microseconds of each pass of one layer, for
 * tests/gpu/convolutions.py, which names the layer and holds cuDNN's beside it.
 *
 * bench_conv N C_IN H W C_OUT K STRIDE PAD: prints "MATH PASS MICROSECONDS" for each math and pass.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "kernels/kernels.h"

enum { WARM = 5, TIMES = 20, TURNS = 7, SHAPE = 8 };

#define NEED(call) bench_need((int)(call), #call)

struct layer {
    struct conv2d shape;
    float *x, *w, *y, *g_w;
    cudaStream_t stream;
};

enum pass { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHT, PASSES };
static const char *const pass_names[] = {"forward", "backward-data", "backward-weight"};
static const char *const math_names[] = {"fp32", "tf32", "bf16"};

static float *new_values(size_t count, cudaStream_t stream)
{
    float *values;

    NEED(cudaMalloc((void **)&values, count * sizeof *values));
    NEED(kernels_fill(count, 0.5f, values, stream));
    return values;
}

static void launch_pass(const struct layer *l, enum pass pass)
{
    if (pass == FORWARD)
        NEED(kernels_conv2d_forward(&l->shape, l->x, l->w, NULL, l->y, l->stream));
    else if (pass == BACKWARD_DATA)
        NEED(kernels_conv2d_backward_data(&l->shape, l->y, l->w, l->x, l->stream));
    else
        NEED(kernels_conv2d_backward_weight(&l->shape, l->x, l->y, l->g_w, NULL, l->stream));
}

/* Microseconds of one launch, the mean of `times`. */
static double mean_launch_us(const struct layer *l, enum pass pass, int times)
{
    NEED(cudaStreamSynchronize(l->stream));
    const uint64_t begin = bench_now_ns();
    for (int i = 0; i < times; i++)
        launch_pass(l, pass);
    NEED(cudaStreamSynchronize(l->stream));
    return (double)(bench_now_ns() - begin) / 1e3 / times;
}

static double median_of_turns(const struct layer *l, enum pass pass)
{
    double turns[TURNS];

    mean_launch_us(l, pass, WARM);
    for (int i = 0; i < TURNS; i++)
        turns[i] = mean_launch_us(l, pass, TIMES);
    return bench_median(turns, TURNS);
}

int main(int argc, char **argv)
{
    int v[SHAPE];
    struct layer l;

    if (argc != SHAPE + 1)
        bench_die("usage: bench_conv N C_IN H W C_OUT K STRIDE PAD");
    for (int i = 0; i < SHAPE; i++)
        v[i] = atoi(argv[i + 1]);
    l.shape = conv2d_shape(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
    const struct conv2d *c = &l.shape;
    if (c->n < 1 || c->c_in < 1 || c->c_out < 1 || c->y_h < 1 || c->y_w < 1)
        bench_die("no such convolution");
    NEED(cudaStreamCreate(&l.stream));
    l.x = new_values((size_t)c->n * c->c_in * c->h * c->w, l.stream);
    l.w = new_values((size_t)c->c_out * c->c_in * c->k * c->k, l.stream);
    l.g_w = new_values((size_t)c->c_out * c->c_in * c->k * c->k, l.stream);
    l.y = new_values((size_t)c->n * c->c_out * c->y_h * c->y_w, l.stream);
    for (int math = KERNELS_FP32; math <= KERNELS_BF16; math++) {
        kernels_set_math((enum kernels_math)math);
        for (int pass = 0; pass < PASSES; pass++)
            printf("%s %s %.1f\n", math_names[math], pass_names[pass],
                   median_of_turns(&l, (enum pass)pass));
    }
    NEED(cudaFree(l.x));
    NEED(cudaFree(l.w));
    NEED(cudaFree(l.g_w));
    NEED(cudaFree(l.y));
    return 0;
}
