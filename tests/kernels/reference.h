/* reference.h: every operation of kernels/kernels.h once more, in double, as the plain loops of its
 * definition. The formulas themselves are tested against finite differences (test_reference.c).
 * Sizes, layouts and what is added to instead of overwritten are those of kernels.h. */
#ifndef DDPCHECK_TESTS_KERNELS_REFERENCE_H
#define DDPCHECK_TESTS_KERNELS_REFERENCE_H

#include "kernels/kernels.h"

void reference_conv2d_forward(const struct conv2d *c, const double *x, const double *w,
                              const double *bias, double *y);
void reference_conv2d_backward_data(const struct conv2d *c, const double *g_y, const double *w,
                                    double *g_x);
void reference_conv2d_backward_weight(const struct conv2d *c, const double *x, const double *g_y,
                                      double *g_w, double *g_bias);

/* Here in the terms of the transposed convolution itself, not of the convolution that it turns
 * round: x[n][c_in][h][w], w[c_in][c_out][k][k], y[n][c_out][(h-1) stride - 2 pad + k][...]. */
struct transposed {
    int n, c_in, h, w, c_out, k, stride, pad;
};
void reference_transposed_forward(const struct transposed *t, const double *x, const double *w,
                                  const double *bias, double *y);
void reference_transposed_backward(const struct transposed *t, const double *x, const double *w,
                                   const double *g_y, double *g_x, double *g_w, double *g_bias);

void reference_linear_forward(int n, int in, int out, const double *x, const double *w,
                              const double *bias, double *y);
void reference_linear_backward(int n, int in, int out, const double *x, const double *w,
                               const double *g_y, double *g_x, double *g_w, double *g_bias);

void reference_batch_norm_forward(int n, int c, int pixels, const double *x, const double *gamma,
                                  const double *beta, double *running_mean, double *running_var,
                                  double momentum, double epsilon, double *mean, double *inv_std,
                                  double *y);
void reference_batch_norm_evaluate(int n, int c, int pixels, const double *x, const double *gamma,
                                   const double *beta, const double *running_mean,
                                   const double *running_var, double epsilon, double *y);
void reference_batch_norm_backward(int n, int c, int pixels, const double *x, const double *gamma,
                                   const double *mean, const double *inv_std, const double *g_y,
                                   double *g_x, double *g_gamma, double *g_beta);

double reference_leaky_relu(double x, double slope);
double reference_leaky_relu_gradient(double x, double slope);
double reference_tanh_gradient_of_y(double y);

double reference_bce_with_logits(size_t count, const double *x, double target);
void reference_bce_with_logits_backward(size_t count, const double *x, double target, double scale,
                                        double *g_x);
double reference_cross_entropy(int n, int classes, const double *x, const int32_t *labels,
                               int32_t *correct);
void reference_cross_entropy_backward(int n, int classes, const double *x, const int32_t *labels,
                                      double scale, double *g_x);

void reference_adam_step(size_t count, double *w, const double *g, double *m, double *v, double lr,
                         double beta1, double beta2, double epsilon, int step);
void reference_sgd_step(size_t count, double *w, const double *g, double *v, double lr,
                        double momentum);

/* The bits of `value` in a binary format with `fraction` bits of fraction, whose smallest normal
 * number has the exponent `least`, rounded to nearest even. For fp16: 10, -14; for bf16: 7, -126.
 * No NaN. */
uint16_t reference_narrow(double value, int fraction, int least);
/* The value of the bits; infinite or NaN where the exponent is all ones. */
double reference_widen(uint16_t bits, int fraction, int least);

#endif
