/* kernels.h: the numeric work of the trainer, as asynchronous launches on a CUDA stream.
 *
 * All pointers are device memory of the stream's device, row-major, images as NCHW; `x` is input,
 * `y` output, `g_` a gradient. Nothing is allocated here; workspaces are the caller's. Every
 * function returns what the launch returned (cudaGetLastError of the launch, not of the run).
 * Sizes are elements unless a name says bytes; they must be positive (else cudaErrorInvalidValue),
 * but an elementwise count of 0 is no work. The kernel of kernels_add is called ddpcheck_add in
 * traces. Definitions follow the papers and formulas that each section names. */
#ifndef DDPCHECK_KERNELS_H
#define DDPCHECK_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* If `status` of a launch or of the first call means that this GPU or its driver can't run what was
 * built: why, with what was built and what to build instead. Else false, and text is untouched. */
bool kernels_explain(cudaError_t status, char *text, size_t bytes);

/* A 2D convolution x[n][c_in][h][w] * w[c_out][c_in][k][k] + b[c_out] -> y[n][c_out][y_h][y_w],
 * y_h = (h + 2 pad - k) / stride + 1. Dilation and groups are 1 (Dumoulin & Visin 2016, section 2).
 * A transposed convolution is the backward-data pass of the convolution whose x is our y: use the
 * same struct, with x and y exchanged, as conv2d_transposed_shape() makes it. */
struct conv2d {
    int32_t n, c_in, h, w, c_out, k, stride, pad, y_h, y_w;
};

struct conv2d conv2d_shape(int n, int c_in, int h, int w, int c_out, int k, int stride, int pad);
/* The convolution whose backward-data maps x[n][c_in][h][w] to y[n][c_out][(h-1) stride - 2 pad +
 * k][...]; weights are w[c_in][c_out][k][k], as in PyTorch's ConvTranspose2d. */
struct conv2d conv2d_transposed_shape(int n, int c_in, int h, int w, int c_out, int k, int stride,
                                      int pad);

/* In what the convolutions and linear layers below multiply: fp32 as it is, or fp32 rounded to tf32
 * (10 bits of fraction, ties away from zero, as PTX's cvt.rna.tf32) or to bf16 (7 bits, ties to
 * even) and multiplied on tensor cores; sums are in fp32, tensors in memory stay fp32, biases and
 * their gradients are fp32 throughout. Devices before compute capability 8.0 multiply the same
 * rounded numbers without tensor cores. */
enum kernels_math { KERNELS_FP32, KERNELS_TF32, KERNELS_BF16 };

/* For all launches of the process from now on (first: KERNELS_FP32). Call it while no thread
 * launches. */
void kernels_set_math(enum kernels_math math);

/* Done to each result of a forward pass, bias included, before it is written. */
enum kernels_activation_kind { KERNELS_IDENTITY, KERNELS_LEAKY_RELU, KERNELS_TANH };
struct kernels_activation {
    int32_t kind; /* enum kernels_activation_kind */
    float slope;  /* of leaky ReLU */
};

/* bias may be NULL. */
cudaError_t kernels_conv2d_forward(const struct conv2d *c, const float *x, const float *w,
                                   const float *bias, float *y, cudaStream_t stream);
cudaError_t kernels_conv2d_backward_data(const struct conv2d *c, const float *g_y, const float *w,
                                         float *g_x, cudaStream_t stream);
/* g_w and g_bias (NULL: not wanted) are added to, not overwritten. */
cudaError_t kernels_conv2d_backward_weight(const struct conv2d *c, const float *x, const float *g_y,
                                           float *g_w, float *g_bias, cudaStream_t stream);
/* The transposed convolution that `c` (from conv2d_transposed_shape) stands for. */
cudaError_t kernels_conv2d_transposed_backward_data(const struct conv2d *c, const float *g_y,
                                                    const float *w, float *g_x,
                                                    cudaStream_t stream);
cudaError_t kernels_conv2d_transposed_backward_weight(const struct conv2d *c, const float *x,
                                                      const float *g_y, float *g_w, float *g_bias,
                                                      cudaStream_t stream);

/* The forward passes with an activation. */
cudaError_t kernels_conv2d_forward_activated(const struct conv2d *c, const float *x, const float *w,
                                             const float *bias,
                                             struct kernels_activation activation, float *y,
                                             cudaStream_t stream);
cudaError_t kernels_conv2d_transposed_forward_activated(const struct conv2d *c, const float *x,
                                                        const float *w, const float *bias,
                                                        struct kernels_activation activation,
                                                        float *y, cudaStream_t stream);

/* y[n][out] = x[n][in] w[out][in]^T + bias[out]; bias may be NULL; g_w, g_bias are added to. */
cudaError_t kernels_linear_forward(int n, int in, int out, const float *x, const float *w,
                                   const float *bias, float *y, cudaStream_t stream);
cudaError_t kernels_linear_backward_data(int n, int in, int out, const float *g_y, const float *w,
                                         float *g_x, cudaStream_t stream);
cudaError_t kernels_linear_backward_weight(int n, int in, int out, const float *x, const float *g_y,
                                           float *g_w, float *g_bias, cudaStream_t stream);

/* Batch normalisation over n and the pixels of each channel (Ioffe & Szegedy 2015, algorithm 1).
 * Training: writes mean[c] and inv_std[c] for the backward pass and moves running_mean/var by
 * `momentum` (running_var with the unbiased variance, as PyTorch). Evaluation: uses running_*. */
cudaError_t kernels_batch_norm_forward(int n, int c, int pixels, const float *x, const float *gamma,
                                       const float *beta, float *running_mean, float *running_var,
                                       float momentum, float epsilon, float *mean, float *inv_std,
                                       float *y, cudaStream_t stream);
cudaError_t kernels_batch_norm_evaluate(int n, int c, int pixels, const float *x,
                                        const float *gamma, const float *beta,
                                        const float *running_mean, const float *running_var,
                                        float epsilon, float *y, cudaStream_t stream);
/* g_gamma and g_beta are added to. */
cudaError_t kernels_batch_norm_backward(int n, int c, int pixels, const float *x,
                                        const float *gamma, const float *mean, const float *inv_std,
                                        const float *g_y, float *g_x, float *g_gamma, float *g_beta,
                                        cudaStream_t stream);

/* Activations. y may be x (in place). Backward of leaky ReLU takes x or y (equal sign for slope >
 * 0); tanh takes y. g_x may be g_y. */
cudaError_t kernels_leaky_relu_forward(size_t count, float slope, const float *x, float *y,
                                       cudaStream_t stream);
cudaError_t kernels_leaky_relu_backward(size_t count, float slope, const float *x, const float *g_y,
                                        float *g_x, cudaStream_t stream);
cudaError_t kernels_tanh_forward(size_t count, const float *x, float *y, cudaStream_t stream);
cudaError_t kernels_tanh_backward(size_t count, const float *y, const float *g_y, float *g_x,
                                  cudaStream_t stream);

/* Binary cross entropy of logits with a constant target, mean over count:
 * max(x,0) - x t + log(1 + exp(-|x|)). Writes one float to loss; g_x = (sigmoid(x) - t) / count. */
cudaError_t kernels_bce_with_logits_forward(size_t count, const float *x, float target, float *loss,
                                            cudaStream_t stream);
cudaError_t kernels_bce_with_logits_backward(size_t count, const float *x, float target,
                                             float scale, float *g_x, cudaStream_t stream);
/* Softmax cross entropy, mean over n: x[n][classes], labels[n]; correct counts the rows whose
 * largest logit is the label's (one int32). g_x = scale (softmax - onehot) / n. */
cudaError_t kernels_cross_entropy_forward(int n, int classes, const float *x, const int32_t *labels,
                                          float *loss, int32_t *correct, cudaStream_t stream);
cudaError_t kernels_cross_entropy_backward(int n, int classes, const float *x,
                                           const int32_t *labels, float scale, float *g_x,
                                           cudaStream_t stream);

/* Adam (Kingma & Ba 2015, algorithm 1; step counts from 1) and SGD with momentum (v = m v + g; w -=
 * lr v). */
cudaError_t kernels_adam_step(size_t count, float *w, const float *g, float *m, float *v, float lr,
                              float beta1, float beta2, float epsilon, int step,
                              cudaStream_t stream);
cudaError_t kernels_sgd_step(size_t count, float *w, const float *g, float *v, float lr,
                             float momentum, cudaStream_t stream);

/* Elementwise. add: y += x. scale: y *= factor. clip: y = min(max(y, -limit), limit). */
cudaError_t kernels_fill(size_t count, float value, float *y, cudaStream_t stream);
cudaError_t kernels_add(size_t count, const float *x, float *y, cudaStream_t stream);
cudaError_t kernels_scale(size_t count, float factor, float *y, cudaStream_t stream);
cudaError_t kernels_clip(size_t count, float limit, float *y, cudaStream_t stream);
/* Rounds to what the 16-bit format can hold and stays fp32; y may be x. *overflow (device memory)
 * is set to 1 if a result is infinite or NaN, else left alone. */
cudaError_t kernels_round_to_f16(size_t count, const float *x, float *y, int32_t *overflow,
                                 cudaStream_t stream);
cudaError_t kernels_round_to_bf16(size_t count, const float *x, float *y, int32_t *overflow,
                                  cudaStream_t stream);

/* Hash, NaNs and Infs of a buffer (payload.h), written to host memory that the device can write.
 * `datatype` is ncclDataType_t's number; `partial`, below PAYLOAD_PARTIALS, is a number that no
 * other launch of the same device uses until this one is done; at most `blocks` blocks. */
struct payload_found;
cudaError_t kernels_payload_hash(const void *buffer, size_t bytes, int datatype,
                                 struct payload_found *found, uint64_t ticket, int partial,
                                 unsigned blocks, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
