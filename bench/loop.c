/* loop.c: 20,000 small AllReduces of two devices as fast as they go, for bench/run.py: operations
 * that come faster than they can be timed one by one. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEVICES = 2, ROUNDS = 10000, ROUNDS_AHEAD = 50, COUNT = 1024 };

static float *buffer[DEVICES];
static cudaStream_t stream[DEVICES];
static ncclComm_t comm[DEVICES];

static void check(int result, const char *what)
{
    if (result == 0)
        return;
    fprintf(stderr, "%s failed with %d\n", what, result);
    exit(1);
}

static void open_devices(void)
{
    check(ncclCommInitAll(comm, DEVICES, NULL), "ncclCommInitAll");
    for (int i = 0; i < DEVICES; i++) {
        check(cudaSetDevice(i), "cudaSetDevice");
        check(cudaMalloc((void **)&buffer[i], COUNT * sizeof(float)), "cudaMalloc");
        check(cudaMemset(buffer[i], 0, COUNT * sizeof(float)), "cudaMemset");
        check(cudaStreamCreate(&stream[i]), "cudaStreamCreate");
    }
}

static void reduce_round(void)
{
    check(ncclGroupStart(), "ncclGroupStart");
    for (int i = 0; i < DEVICES; i++)
        check(ncclAllReduce(buffer[i], buffer[i], COUNT, ncclFloat32, ncclSum, comm[i], stream[i]),
              "ncclAllReduce");
    check(ncclGroupEnd(), "ncclGroupEnd");
}

int main(void)
{
    open_devices();
    for (int round = 1; round <= ROUNDS; round++) {
        reduce_round();
        for (int i = 0; i < DEVICES && round % ROUNDS_AHEAD == 0; i++)
            check(cudaStreamSynchronize(stream[i]), "cudaStreamSynchronize");
    }
    for (int i = 0; i < DEVICES; i++)
        check(ncclCommDestroy(comm[i]), "ncclCommDestroy");
    return 0;
}
