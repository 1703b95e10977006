/* body.h: what every loader has NCCL do, twice, with a communicator each: two ranks in one process,
 * ROUNDS AllReduces each, in groups. */
#ifndef LOADERS_BODY_H
#define LOADERS_BODY_H

#include <cuda_runtime_api.h>
#include <nccl.h>

enum { LOADER_RANKS = 2, LOADER_ROUNDS = 5, LOADER_COUNT = 256 };

/* NCCL as the loader found it. nccl.h declares groups without a prototype. */
struct nccl {
    __typeof__(&ncclCommInitAll) init_all;
    __typeof__(&ncclAllReduce) all_reduce;
    ncclResult_t (*group_start)(void), (*group_end)(void);
    __typeof__(&ncclCommDestroy) destroy;
};

/* Returns 0, or the line that failed. */
static inline int loader_body(const struct nccl *nccl)
{
    ncclComm_t comm[LOADER_RANKS];
    cudaStream_t stream[LOADER_RANKS];
    float *buffer[LOADER_RANKS];
    if (nccl->init_all(comm, LOADER_RANKS, NULL))
        return __LINE__;
    for (int i = 0; i < LOADER_RANKS; i++)
        if (cudaSetDevice(i) || cudaStreamCreate(&stream[i]) ||
            cudaMalloc((void **)&buffer[i], LOADER_COUNT * sizeof(float)) ||
            cudaMemset(buffer[i], 0, LOADER_COUNT * sizeof(float)))
            return __LINE__;
    for (int round = 0; round < LOADER_ROUNDS; round++) {
        if (nccl->group_start())
            return __LINE__;
        for (int i = 0; i < LOADER_RANKS; i++)
            if (nccl->all_reduce(buffer[i], buffer[i], LOADER_COUNT, ncclFloat32, ncclSum, comm[i],
                                 stream[i]))
                return __LINE__;
        if (nccl->group_end())
            return __LINE__;
    }
    for (int i = 0; i < LOADER_RANKS; i++)
        if (cudaSetDevice(i) || cudaStreamSynchronize(stream[i]))
            return __LINE__;
    for (int i = 0; i < LOADER_RANKS; i++)
        if (nccl->destroy(comm[i]))
            return __LINE__;
    return 0;
}

/* The calls of HIP that rccl_job.c makes; 0 is success. A hipStream_t is a pointer, as CUDA's. */
int hipSetDevice(int device);
int hipMalloc(void **memory, size_t bytes);
int hipStreamCreate(cudaStream_t *stream);
int hipStreamSynchronize(cudaStream_t stream);

#endif
