/* wrappers.h: prototypes of the wrappers, from calls.def. Where a CUDA or NCCL header declares the same
 * function, the compiler compares the two. */
#ifndef DDPCHECK_WRAPPERS_H
#define DDPCHECK_WRAPPERS_H

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "interpose/shim.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 28, 0)
#error "libddpcheck.so is built with the headers of NCCL 2.28 or newer (it then works with older libraries as well)"
#endif

struct ncclDevCommRequirements;
struct ncclDevComm;

#define NCCL(name, result, parameters, ...) EXPORT result name parameters;
#define CUDA(name, result, parameters, ...) EXPORT result name parameters;
#define CUDA_PTSZ(name, result, parameters, ...) EXPORT result name parameters; EXPORT result name##_ptsz parameters;
#define CUDA_PTDS(name, result, parameters, ...) EXPORT result name parameters; EXPORT result name##_ptds parameters;
#define CUDA_OWN(name, result, parameters, ...) EXPORT result name parameters;
#include "interpose/calls.def"
#undef NCCL
#undef CUDA
#undef CUDA_PTSZ
#undef CUDA_PTDS
#undef CUDA_OWN

#endif
