/* channel_sum.cuh: the gradient of a bias. */
#ifndef DDPCHECK_KERNELS_CHANNEL_SUM_CUH
#define DDPCHECK_KERNELS_CHANNEL_SUM_CUH

#include "kernels/kernels.h"

/* sum[channel] += the sum of x[n][channels][pixels] over n and pixels. NULL for sum: nothing to do.
 */
cudaError_t channel_sum(int n, int channels, int pixels, const float *x, float *sum,
                        cudaStream_t stream);

#endif
