/* One process, all devices: tensor and data parallel communicators, each device's on two streams of its own. For the last
 * device a reduction that is ready early is issued before the other one; the others have them the other way round.
 * expect: DC204 possible ranks=2 place=step */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

/* All devices take one of the two; the odd one, if there is one, takes the other. */
static void step(struct rank *rank, int ranks, ncclComm_t *data, cudaStream_t *stream, float **x, bool second, int odd)
{
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++)
        if (second != (i == odd))
            NCCL(ncclAllReduce(x[i], x[i], COUNT, ncclFloat32, ncclSum, data[i], stream[i]));
        else
            NCCL(ncclAllReduce(x[i], x[i], COUNT, ncclFloat32, ncclSum, rank[i].comm, rank[i].stream));
    NCCL(ncclGroupEnd());
}

static void order_of_devices(struct rank *rank, int ranks)
{
    float *x[SUITE_RANKS_MAX], *y[SUITE_RANKS_MAX];
    cudaStream_t stream[SUITE_RANKS_MAX];
    ncclComm_t data[SUITE_RANKS_MAX];

    NCCL(ncclCommInitAll(data, ranks, NULL));
    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        CUDA(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
        x[i] = suite_floats(COUNT);
        y[i] = suite_floats(COUNT);
    }
#ifdef TWIN
    int odd = -1;
#else
    int odd = 2;
#endif
    step(rank, ranks, data, stream, x, false, odd);
    step(rank, ranks, data, stream, y, true, odd);
    for (int i = 0; i < ranks; i++) {
        CUDA(cudaStreamSynchronize(rank[i].stream));
        CUDA(cudaStreamSynchronize(stream[i]));
        NCCL(ncclCommDestroy(data[i]));
    }
}

SUITE_CASE(.run_all = order_of_devices, .ranks = 3, .layout = ALL);
