/* fake_generic.c: every function of calls.def as one that succeeds and does nothing, weak, so that
 * fake_nccl.c and fake_cudart.c define those that matter. With FAKE_NCCL libnccl's, else libcudart's. */
#include <cuda_runtime_api.h>
#include <nccl.h>

struct ncclDevCommRequirements;
struct ncclDevComm;

#define FAKE(name, result, parameters) \
    __attribute__((weak)) result name parameters; \
    __attribute__((weak)) result name parameters { return 0; }

#ifdef FAKE_NCCL
#define NCCL(name, result, parameters, ...) FAKE(name, result, parameters)
#define CUDA(...)
#define CUDA_PTSZ(...)
#define CUDA_PTDS(...)
#define CUDA_OWN(...)
#else
#define NCCL(...)
#define CUDA(name, result, parameters, ...) FAKE(name, result, parameters)
#define CUDA_PTSZ(name, result, parameters, ...) FAKE(name, result, parameters) FAKE(name##_ptsz, result, parameters)
#define CUDA_PTDS(name, result, parameters, ...) FAKE(name, result, parameters) FAKE(name##_ptds, result, parameters)
#define CUDA_OWN(name, result, parameters, ...) FAKE(name, result, parameters)
#endif
#include "interpose/calls.def"
