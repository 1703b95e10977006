/* elementwise.cu: the kernels of elementwise.def and their launchers. */
#include "kernels/casts.h"
#include "kernels/each.h"
#include "launch.cuh"

#include <cmath>

#define DECLARE(type, name) , type name
#define PASS(type, name) , name
#define ELEMENT_KERNEL(name, letters, body, ...)                                                    \
    __global__ void ddpcheck_##name(size_t count EACH(DECLARE, __VA_ARGS__))                        \
    {                                                                                               \
        for (size_t i = element_first(); i < count; i += element_stride()) {                        \
            body;                                                                                   \
        }                                                                                           \
    }
#define ELEMENT(name, letters, body, ...)                                                           \
    ELEMENT_KERNEL(name, letters, body, __VA_ARGS__)                                                \
    cudaError_t kernels_##name(size_t count EACH(DECLARE, __VA_ARGS__), cudaStream_t stream)        \
    {                                                                                               \
        return launch_elements(ddpcheck_##name, stream, count EACH(PASS, __VA_ARGS__));             \
    }
#include "kernels/elementwise.def"

cudaError_t kernels_adam_step(size_t count, float *w, const float *g, float *m, float *v, float lr, float beta1,
                              float beta2, float epsilon, int step, cudaStream_t stream)
{
    if (step < 1)
        return cudaErrorInvalidValue;
    const double step_size = lr / (1 - std::pow((double)beta1, step));
    const double root_correction = 1 / std::sqrt(1 - std::pow((double)beta2, step));

    return launch_elements(ddpcheck_adam_step, stream, count, w, g, m, v, (float)step_size, beta1, beta2,
                           (float)root_correction, epsilon);
}
