/* elementwise.cu: the kernels of elementwise.def and their launchers. A thread takes LANES
 * neighbours at a time, which it has in registers under the arrays' names; what is left at the end
 * is taken one by one. */
#include "kernels/casts.h"
#include "kernels/each.h"
#include "lanes.cuh"
#include "launch.cuh"

#include <cmath>

/* LANES elements of a parameter from `first` on: of an array that has an element for each i; others
 * as they are. */
template <typename T> static __device__ inline T lanes_of(T value, size_t)
{
    return value;
}
static __device__ inline lanes<float, LANES> lanes_of(float *home, size_t first)
{
    return lanes<float, LANES>(home + first);
}
static __device__ inline lanes<const float, LANES> lanes_of(const float *home, size_t first)
{
    return lanes<const float, LANES>(home + first);
}

#define DECLARE(type, name)       , type name
#define DECLARE_WHOLE(type, name) , type name##_whole
#define IN_LANES(type, name)      auto name = lanes_of(name##_whole, first);
#define AS_IT_IS(type, name)      type name = name##_whole;
#define PASS(type, name)          , name
#define ELEMENT_KERNEL(name, letters, body, ...)                                        \
    __global__ void ddpcheck_##name(size_t count EACH(DECLARE_WHOLE, __VA_ARGS__))      \
    {                                                                                   \
        const size_t in_lanes = count / LANES * LANES;                                  \
        for (size_t first = element_first() * LANES; first < in_lanes;                  \
             first += element_stride() * LANES) {                                       \
            EACH(IN_LANES, __VA_ARGS__)                                                 \
            for (int i = 0; i < LANES; i++) {                                           \
                body;                                                                   \
            }                                                                           \
        }                                                                               \
        EACH(AS_IT_IS, __VA_ARGS__)                                                     \
        for (size_t i = in_lanes + element_first(); i < count; i += element_stride()) { \
            body;                                                                       \
        }                                                                               \
    }
#define ELEMENT(name, letters, body, ...)                                                      \
    ELEMENT_KERNEL(name, letters, body, __VA_ARGS__)                                           \
    cudaError_t kernels_##name(size_t count EACH(DECLARE, __VA_ARGS__), cudaStream_t stream)   \
    {                                                                                          \
        return launch_elements(ddpcheck_##name, LANES, stream, count EACH(PASS, __VA_ARGS__)); \
    }
#include "kernels/elementwise.def"

cudaError_t kernels_adam_step(size_t count, float *w, const float *g, float *m, float *v, float lr,
                              float beta1, float beta2, float epsilon, int step,
                              cudaStream_t stream)
{
    if (step < 1)
        return cudaErrorInvalidValue;
    const double step_size = lr / (1 - std::pow((double)beta1, step));
    const double root_correction = 1 / std::sqrt(1 - std::pow((double)beta2, step));

    return launch_elements(ddpcheck_adam_step, LANES, stream, count, w, g, m, v, (float)step_size,
                           beta1, beta2, (float)root_correction, epsilon);
}
