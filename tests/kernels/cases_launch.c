/* cases_launch.c: many streams at once, and what a launcher has to refuse or to leave alone. */
#include "tests/kernels/cases.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/values.h"

#include <pthread.h>
#include <string.h>

static const struct kernels_activation as_it_is = {KERNELS_IDENTITY, 0};

enum { STREAMS = 4, ROUNDS = 10 };

struct worker {
    pthread_t thread;
    cudaStream_t stream;
    struct conv2d shape;
    const struct values *x, *w, *y;
};

static void *work(void *argument)
{
    const struct worker *worker = argument;

    for (int i = 0; i < ROUNDS; i++)
        LAUNCHED(kernels_conv2d_forward(&worker->shape, worker->x->device, worker->w->device, NULL,
                                        worker->y->device, worker->stream));
    MUST(cudaStreamSynchronize(worker->stream));
    return NULL;
}

/* Convolutions of different sizes at the same time, each from a thread and a stream of its own:
 * none may disturb another's scratch. */
void case_streams(void)
{
    struct worker workers[STREAMS];

    for (int i = 0; i < STREAMS; i++) {
        struct worker *worker = &workers[i];
        worker->shape = conv2d_shape(2 + i, 3 + 5 * i, 20, 17 + i, 8 + i, 3 + i, 1 + i % 2, 1);
        const struct conv2d *c = &worker->shape;
        struct values *x = values_new((size_t)c->n * c->c_in * c->h * c->w);
        struct values *w = values_new((size_t)c->c_out * c->c_in * c->k * c->k);
        struct values *y = values_new((size_t)c->n * c->c_out * c->y_h * c->y_w);

        reference_conv2d_forward(c, x->truth, w->truth, NULL, y->truth);
        worker->x = x;
        worker->w = w;
        worker->y = y;
        MUST(cudaStreamCreateWithFlags(&worker->stream, cudaStreamNonBlocking));
    }
    for (int i = 0; i < STREAMS; i++)
        MUST(pthread_create(&workers[i].thread, NULL, work, &workers[i]) ? cudaErrorUnknown
                                                                         : cudaSuccess);
    for (int i = 0; i < STREAMS; i++) {
        pthread_join(workers[i].thread, NULL);
        values_expect((struct values *)workers[i].y, 2e-5, "conv2d on stream %d of %d", i, STREAMS);
        MUST(cudaStreamDestroy(workers[i].stream));
    }
}

static void expect_status(const char *what, cudaError_t got, cudaError_t expected)
{
    if (got != expected)
        fail("%s: expected %s, got %s", what, cudaGetErrorString(expected),
             cudaGetErrorString(got));
}

void case_refused(void)
{
    struct values *x = values_new(64);
    float *p = x->device;
    const struct conv2d too_small = conv2d_shape(1, 1, 2, 2, 1, 5, 1, 1),
                        no_stride = conv2d_shape(1, 1, 4, 4, 1, 1, 0, 0);
    const struct conv2d no_image = conv2d_shape(0, 1, 4, 4, 1, 1, 1, 0),
                        over = conv2d_shape(1, 1, 2, 2, 1, 5, 3, 1);
    const struct conv2d all_pad = conv2d_transposed_shape(1, 1, 1, 1, 1, 2, 1, 1);

    expect_status("a filter larger than the image",
                  kernels_conv2d_forward(&too_small, p, p, NULL, p, stream), cudaErrorInvalidValue);
    expect_status("the same with a stride", kernels_conv2d_forward(&over, p, p, NULL, p, stream),
                  cudaErrorInvalidValue);
    expect_status("a stride of 0", kernels_conv2d_backward_data(&no_stride, p, p, p, stream),
                  cudaErrorInvalidValue);
    expect_status("no image", kernels_conv2d_backward_weight(&no_image, p, p, p, NULL, stream),
                  cudaErrorInvalidValue);
    expect_status(
        "nothing left of the output",
        kernels_conv2d_transposed_forward_activated(&all_pad, p, p, NULL, as_it_is, p, stream),
        cudaErrorInvalidValue);
    expect_status("no rows", kernels_linear_forward(0, 1, 1, p, p, NULL, p, stream),
                  cudaErrorInvalidValue);
    expect_status("no channels", kernels_batch_norm_evaluate(1, 0, 1, p, p, p, p, p, 0, p, stream),
                  cudaErrorInvalidValue);
    expect_status("the mean of nothing", kernels_bce_with_logits_forward(0, p, 0, p, stream),
                  cudaErrorInvalidValue);
    expect_status("Adam's step 0", kernels_adam_step(1, p, p, p, p, 1, 0.5f, 0.5f, 1, 0, stream),
                  cudaErrorInvalidValue);
    expect_status("fill of no element", kernels_fill(0, 1, p, stream), cudaSuccess);
    values_expect(x, 0, "memory that no refused launch may touch");
}
