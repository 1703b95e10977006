/* A leaky ReLU runs in place on the output that tanh had saved for its backward.
 * expect: DC307 certain ranks=0-1 place=activate
 * minimal: yes */
#include "tests/suite/training/loop.h"

struct tensor {
    float *data;
    unsigned version;
};

static void activate(struct rank *me, struct tensor *x)
{
    CUDA(cudaMemsetAsync(x->data, 0, sizeof *x->data, me->stream));       /* stands for the kernel */
    char text[96];
    snprintf(text, sizeof text, "ddpcheck:modify tensor=%p version=%u name=leaky_relu_", (void *)x->data, ++x->version);
    nvtxMarkA(text);
}

static void announce(const char *what, const struct tensor *x, unsigned saved)
{
    char text[128];
    snprintf(text, sizeof text, "ddpcheck:%s tensor=%p version=%u saved=%u name=tanh's output", what, (void *)x->data, x->version, saved);
    nvtxMarkA(text);
}

static void activation_in_place(struct rank *me)
{
    struct tensor output = { suite_floats(100), 0 }, copy = { suite_floats(100), 0 };
    unsigned saved = output.version;
    announce("save", &output, saved);
#ifdef TWIN
    activate(me, &copy);            /* out of place */
#else
    (void)copy;
    activate(me, &output);
#endif
    announce("use", &output, saved);
    NCCL(ncclAllReduce(output.data, output.data, 100, ncclFloat32, ncclAvg, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = activation_in_place, .ranks = 2, .layout = PROCESSES);
