/* reference_layers.c: convolutions, linear layers and batch normalisation in double. */
#include "tests/kernels/reference.h"

#include <math.h>

/* Calls visit for every (pixel of x, weight, pixel of y) that meet, with their indices. */
typedef void visit_function(void *context, size_t x, size_t w, size_t y);

static void conv2d_visit(const struct conv2d *c, visit_function *visit, void *context)
{
    for (int n = 0; n < c->n; n++)
        for (int o = 0; o < c->c_out; o++)
            for (int i = 0; i < c->c_in; i++)
                for (int yh = 0; yh < c->y_h; yh++)
                    for (int yw = 0; yw < c->y_w; yw++)
                        for (int kh = 0; kh < c->k; kh++)
                            for (int kw = 0; kw < c->k; kw++) {
                                const int h = yh * c->stride + kh - c->pad,
                                          w = yw * c->stride + kw - c->pad;
                                if (h < 0 || h >= c->h || w < 0 || w >= c->w)
                                    continue;
                                visit(context, (((size_t)n * c->c_in + i) * c->h + h) * c->w + w,
                                      (((size_t)o * c->c_in + i) * c->k + kh) * c->k + kw,
                                      (((size_t)n * c->c_out + o) * c->y_h + yh) * c->y_w + yw);
                            }
}

static void transposed_visit(const struct transposed *t, visit_function *visit, void *context)
{
    const int height = (t->h - 1) * t->stride - 2 * t->pad + t->k,
              width = (t->w - 1) * t->stride - 2 * t->pad + t->k;

    for (int n = 0; n < t->n; n++)
        for (int i = 0; i < t->c_in; i++)
            for (int o = 0; o < t->c_out; o++)
                for (int h = 0; h < t->h; h++)
                    for (int w = 0; w < t->w; w++)
                        for (int kh = 0; kh < t->k; kh++)
                            for (int kw = 0; kw < t->k; kw++) {
                                const int yh = h * t->stride + kh - t->pad,
                                          yw = w * t->stride + kw - t->pad;
                                if (yh < 0 || yh >= height || yw < 0 || yw >= width)
                                    continue;
                                visit(context, (((size_t)n * t->c_in + i) * t->h + h) * t->w + w,
                                      (((size_t)i * t->c_out + o) * t->k + kh) * t->k + kw,
                                      (((size_t)n * t->c_out + o) * height + yh) * width + yw);
                            }
}

struct product {
    const double *x, *w, *g_y;
    double *y, *g_x, *g_w;
};

static void add_y(void *context, size_t x, size_t w, size_t y)
{
    const struct product *p = context;
    p->y[y] += p->x[x] * p->w[w];
}

static void add_g_x(void *context, size_t x, size_t w, size_t y)
{
    const struct product *p = context;
    p->g_x[x] += p->g_y[y] * p->w[w];
}

static void add_g_w(void *context, size_t x, size_t w, size_t y)
{
    const struct product *p = context;
    p->g_w[w] += p->g_y[y] * p->x[x];
}

/* y[n][channels][pixels] = bias[channel], 0 without bias. */
static void set_bias(int n, int channels, size_t pixels, const double *bias, double *y)
{
    for (size_t i = 0; i < (size_t)n * channels * pixels; i++)
        y[i] = bias ? bias[i / pixels % channels] : 0;
}

static void add_bias_gradient(int n, int channels, size_t pixels, const double *g_y, double *g_bias)
{
    for (size_t i = 0; g_bias && i < (size_t)n * channels * pixels; i++)
        g_bias[i / pixels % channels] += g_y[i];
}

void reference_conv2d_forward(const struct conv2d *c, const double *x, const double *w,
                              const double *bias, double *y)
{
    set_bias(c->n, c->c_out, (size_t)c->y_h * c->y_w, bias, y);
    conv2d_visit(c, add_y, &(struct product){.x = x, .w = w, .y = y});
}

void reference_conv2d_backward_data(const struct conv2d *c, const double *g_y, const double *w,
                                    double *g_x)
{
    set_bias(c->n, c->c_in, (size_t)c->h * c->w, NULL, g_x);
    conv2d_visit(c, add_g_x, &(struct product){.g_y = g_y, .w = w, .g_x = g_x});
}

void reference_conv2d_backward_weight(const struct conv2d *c, const double *x, const double *g_y,
                                      double *g_w, double *g_bias)
{
    conv2d_visit(c, add_g_w, &(struct product){.x = x, .g_y = g_y, .g_w = g_w});
    add_bias_gradient(c->n, c->c_out, (size_t)c->y_h * c->y_w, g_y, g_bias);
}

static size_t transposed_pixels(const struct transposed *t)
{
    return (size_t)((t->h - 1) * t->stride - 2 * t->pad + t->k) *
           ((t->w - 1) * t->stride - 2 * t->pad + t->k);
}

void reference_transposed_forward(const struct transposed *t, const double *x, const double *w,
                                  const double *bias, double *y)
{
    set_bias(t->n, t->c_out, transposed_pixels(t), bias, y);
    transposed_visit(t, add_y, &(struct product){.x = x, .w = w, .y = y});
}

void reference_transposed_backward(const struct transposed *t, const double *x, const double *w,
                                   const double *g_y, double *g_x, double *g_w, double *g_bias)
{
    set_bias(t->n, t->c_in, (size_t)t->h * t->w, NULL, g_x);
    transposed_visit(t, add_g_x, &(struct product){.g_y = g_y, .w = w, .g_x = g_x});
    transposed_visit(t, add_g_w, &(struct product){.x = x, .g_y = g_y, .g_w = g_w});
    add_bias_gradient(t->n, t->c_out, transposed_pixels(t), g_y, g_bias);
}

/* A linear layer is a convolution of 1x1 images. */
static struct conv2d linear_shape(int n, int in, int out)
{
    return (struct conv2d){n, in, 1, 1, out, 1, 1, 0, 1, 1};
}

void reference_linear_forward(int n, int in, int out, const double *x, const double *w,
                              const double *bias, double *y)
{
    const struct conv2d c = linear_shape(n, in, out);
    reference_conv2d_forward(&c, x, w, bias, y);
}

void reference_linear_backward(int n, int in, int out, const double *x, const double *w,
                               const double *g_y, double *g_x, double *g_w, double *g_bias)
{
    const struct conv2d c = linear_shape(n, in, out);
    reference_conv2d_backward_data(&c, g_y, w, g_x);
    reference_conv2d_backward_weight(&c, x, g_y, g_w, g_bias);
}

static int channel_of(size_t i, int c, int pixels)
{
    return (int)(i / pixels % c);
}

void reference_batch_norm_forward(int n, int c, int pixels, const double *x, const double *gamma,
                                  const double *beta, double *running_mean, double *running_var,
                                  double momentum, double epsilon, double *mean, double *inv_std,
                                  double *y)
{
    const size_t all = (size_t)n * c * pixels;
    const double count = (double)n * pixels;

    for (int channel = 0; channel < c; channel++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < all; i++)
            sum += channel_of(i, c, pixels) == channel ? x[i] : 0;
        mean[channel] = sum / count;
        for (size_t i = 0; i < all; i++)
            squares += channel_of(i, c, pixels) == channel ? pow(x[i] - mean[channel], 2) : 0;
        inv_std[channel] = 1 / sqrt(squares / count + epsilon);
        running_mean[channel] = (1 - momentum) * running_mean[channel] + momentum * mean[channel];
        running_var[channel] = (1 - momentum) * running_var[channel] +
                               momentum * squares / (count > 1 ? count - 1 : 1);
    }
    for (size_t i = 0; i < all; i++) {
        const int channel = channel_of(i, c, pixels);
        y[i] = gamma[channel] * (x[i] - mean[channel]) * inv_std[channel] + beta[channel];
    }
}

void reference_batch_norm_evaluate(int n, int c, int pixels, const double *x, const double *gamma,
                                   const double *beta, const double *running_mean,
                                   const double *running_var, double epsilon, double *y)
{
    for (size_t i = 0; i < (size_t)n * c * pixels; i++) {
        const int channel = channel_of(i, c, pixels);
        y[i] = gamma[channel] * (x[i] - running_mean[channel]) /
                   sqrt(running_var[channel] + epsilon) +
               beta[channel];
    }
}

void reference_batch_norm_backward(int n, int c, int pixels, const double *x, const double *gamma,
                                   const double *mean, const double *inv_std, const double *g_y,
                                   double *g_x, double *g_gamma, double *g_beta)
{
    const size_t all = (size_t)n * c * pixels;
    const double count = (double)n * pixels;

    for (int channel = 0; channel < c; channel++) {
        double sum = 0, product = 0;
        for (size_t i = 0; i < all; i++)
            if (channel_of(i, c, pixels) == channel) {
                sum += g_y[i];
                product += g_y[i] * (x[i] - mean[channel]) * inv_std[channel];
            }
        for (size_t i = 0; i < all; i++)
            if (channel_of(i, c, pixels) == channel)
                g_x[i] = gamma[channel] * inv_std[channel] *
                         (g_y[i] - sum / count -
                          (x[i] - mean[channel]) * inv_std[channel] * product / count);
        g_gamma[channel] += product;
        g_beta[channel] += sum;
    }
}
