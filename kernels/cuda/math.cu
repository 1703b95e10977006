/* math.cu: which arithmetic convolutions and linear layers use. */
#include "math.cuh"

enum kernels_math math_set = KERNELS_FP32;

void kernels_set_math(enum kernels_math math)
{
    math_set = math;
}
