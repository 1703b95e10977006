/* wrappers.h: prototypes of the wrappers, from calls.def, for the sources that are compiled once
 * for each runtime. Where a CUDA or NCCL header declares the same function, the compiler compares
 * the two. */
#ifndef DDPCHECK_WRAPPERS_H
#define DDPCHECK_WRAPPERS_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "abi/nccl_later.h"
#include "interpose/calls/runtime_symbols.h"
#include "interpose/shim/shim.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 28, 0)
#error \
    "libddpcheck.so is built with the headers of NCCL 2.28 or newer (older libraries work as well)"
#endif

struct ncclDevCommRequirements;
struct ncclDevComm;

#define PROTOTYPE(name, result, parameters) EXPORT result name parameters;
#define RUNTIME_PROTOTYPE(name, result, parameters) \
    EXPORT result name parameters __asm__(RUNTIME_LOCAL(#name));

#define NCCL(name, result, parameters, ...)         PROTOTYPE(name, result, parameters)
#define NCCL_AS(name, api, result, parameters, ...) PROTOTYPE(name, result, parameters)
#define NCCL_OWN(name)                              /* refuse.c */
#define CUDA(name, result, parameters, ...)         RUNTIME_PROTOTYPE(name, result, parameters)
#define CUDA_PTSZ(name, result, parameters, ...) \
    RUNTIME_PROTOTYPE(name, result, parameters)  \
    RUNTIME_PROTOTYPE(name##_ptsz, result, parameters)
#define CUDA_PTDS(name, result, parameters, ...) \
    RUNTIME_PROTOTYPE(name, result, parameters)  \
    RUNTIME_PROTOTYPE(name##_ptds, result, parameters)
#define CUDA_OWN(name)                              /* runtime_entry_point.c, set_device.c */
#define CUDA_AS(name, api, result, parameters, ...) RUNTIME_PROTOTYPE(name, result, parameters)
#define CUDA_AS_PTSZ(name, api, result, parameters, ...) \
    RUNTIME_PROTOTYPE(name, result, parameters)          \
    RUNTIME_PROTOTYPE(name##_ptsz, result, parameters)
#define CUDA_WORDS(name, ...)              /* words.c */
#define DRIVER(name, api, parameters, ...) PROTOTYPE(name, CUresult, parameters)
#define DRIVER_PTSZ(name, api, parameters, ...) \
    PROTOTYPE(name, CUresult, parameters)       \
    PROTOTYPE(name##_ptsz, CUresult, parameters)
#define DRIVER_PTDS(name, api, parameters, ...) \
    PROTOTYPE(name, CUresult, parameters)       \
    PROTOTYPE(name##_ptds, CUresult, parameters)
#define DRIVER_OWN(name) /* entry_point.c, context.c */
#include "interpose/calls/calls.def"
#undef NCCL
#undef NCCL_AS
#undef NCCL_OWN
#undef CUDA
#undef CUDA_PTSZ
#undef CUDA_PTDS
#undef CUDA_OWN
#undef CUDA_AS
#undef CUDA_AS_PTSZ
#undef CUDA_WORDS
#undef DRIVER
#undef DRIVER_PTSZ
#undef DRIVER_PTDS
#undef DRIVER_OWN

#endif
