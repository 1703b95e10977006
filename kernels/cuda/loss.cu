/* loss.cu: a loss is one number of a few thousand logits at most: one block adds it up, in a fixed
 * order. */
#include "launch.cuh"

__global__ void ddpcheck_bce_with_logits_forward(size_t count, const float *x, float target,
                                                 float *loss)
{
    float sum = 0;

    for (size_t i = threadIdx.x; i < count; i += blockDim.x)
        sum += fmaxf(x[i], 0) - x[i] * target + log1pf(expf(-fabsf(x[i])));
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *loss = sum / (float)count;
}

/* The largest logit of a row and the sum of exp(logit - largest), by one warp. */
static __device__ inline void row_scale(const float *row, int classes, float *largest, float *sum)
{
    float mine = -INFINITY, total = 0;

    for (int i = threadIdx.x % WARP; i < classes; i += WARP)
        mine = fmaxf(mine, row[i]);
    *largest = warp_max(mine);
    for (int i = threadIdx.x % WARP; i < classes; i += WARP)
        total += expf(row[i] - *largest);
    *sum = warp_sum(total);
}

/* Whether the label's logit is the row's largest, the first one of equals. A NaN anywhere: it is
 * not. */
static __device__ inline bool row_is_correct(const float *row, int classes, int label)
{
    bool beaten = false;

    for (int i = threadIdx.x % WARP; i < classes; i += WARP)
        beaten |= !(row[i] < row[label] || (row[i] == row[label] && i >= label));
    return !__any_sync(0xffffffff, beaten);
}

/* A label outside of the classes makes the loss NaN. */
__global__ void ddpcheck_cross_entropy_forward(int n, int classes, const float *x,
                                               const int32_t *labels, float *loss, int32_t *correct)
{
    const int warps = blockDim.x / WARP, lane = threadIdx.x % WARP;
    float sum = 0, hits = 0;

    for (int row = threadIdx.x / WARP; row < n; row += warps) {
        const float *logits = x + (size_t)row * classes;
        const int label = labels[row];
        const bool known = label >= 0 && label < classes;
        float largest, total;
        row_scale(logits, classes, &largest, &total);
        const bool hit = known && row_is_correct(logits, classes, label);
        if (lane == 0) {
            sum += known ? logf(total) + largest - logits[label] : NAN;
            hits += hit;
        }
    }
    sum = block_sum(sum);
    hits = block_sum(hits);
    if (threadIdx.x == 0) {
        *loss = sum / (float)n;
        *correct = (int32_t)hits;
    }
}

__global__ void ddpcheck_cross_entropy_backward(int n, int classes, const float *x,
                                                const int32_t *labels, float scale, float *g_x)
{
    const int warps = gridDim.x * (blockDim.x / WARP);

    for (int row = (blockIdx.x * blockDim.x + threadIdx.x) / WARP; row < n; row += warps) {
        const float *logits = x + (size_t)row * classes;
        float largest, total;
        row_scale(logits, classes, &largest, &total);
        for (int i = threadIdx.x % WARP; i < classes; i += WARP)
            g_x[(size_t)row * classes + i] =
                scale / (float)n * (expf(logits[i] - largest) / total - (i == labels[row] ? 1 : 0));
    }
}

cudaError_t kernels_bce_with_logits_forward(size_t count, const float *x, float target, float *loss,
                                            cudaStream_t stream)
{
    if (count == 0)
        return cudaErrorInvalidValue;
    return launch(ddpcheck_bce_with_logits_forward, 1, 4 * BLOCK, stream, count, x, target, loss);
}

cudaError_t kernels_cross_entropy_forward(int n, int classes, const float *x, const int32_t *labels,
                                          float *loss, int32_t *correct, cudaStream_t stream)
{
    if (n <= 0 || n > 1 << 24 || classes <= 0) /* hits are counted in a float */
        return cudaErrorInvalidValue;
    return launch(ddpcheck_cross_entropy_forward, 1, 4 * BLOCK, stream, n, classes, x, labels, loss,
                  correct);
}

cudaError_t kernels_cross_entropy_backward(int n, int classes, const float *x,
                                           const int32_t *labels, float scale, float *g_x,
                                           cudaStream_t stream)
{
    if (n <= 0 || classes <= 0)
        return cudaErrorInvalidValue;
    return launch(ddpcheck_cross_entropy_backward, blocks_for(n, BLOCK / WARP), BLOCK, stream, n,
                  classes, x, labels, scale, g_x);
}
