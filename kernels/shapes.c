/* shapes.c: the geometry of convolutions. A shape that yields no pixel has y_h, y_w or h, w of 0 or
 * less, which the launchers refuse. */
#include "kernels/kernels.h"

static int output_size(int size, int k, int stride, int pad)
{
    const int span = size + 2 * pad - k;

    return span < 0 || stride < 1 ? 0 : span / stride + 1;
}

struct conv2d conv2d_shape(int n, int c_in, int h, int w, int c_out, int k, int stride, int pad)
{
    return (struct conv2d){.n = n,
                           .c_in = c_in,
                           .h = h,
                           .w = w,
                           .c_out = c_out,
                           .k = k,
                           .stride = stride,
                           .pad = pad,
                           .y_h = output_size(h, k, stride, pad),
                           .y_w = output_size(w, k, stride, pad)};
}

struct conv2d conv2d_transposed_shape(int n, int c_in, int h, int w, int c_out, int k, int stride,
                                      int pad)
{
    return (struct conv2d){.n = n,
                           .c_in = c_out,
                           .h = (h - 1) * stride - 2 * pad + k,
                           .w = (w - 1) * stride - 2 * pad + k,
                           .c_out = c_in,
                           .k = k,
                           .stride = stride,
                           .pad = pad,
                           .y_h = h,
                           .y_w = w};
}
