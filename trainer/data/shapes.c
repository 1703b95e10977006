/* shapes.c: draws the images of the synthetic data set. */
#include "trainer/data/shapes.h"

#include <math.h>
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/random.h"

struct series {
    uint64_t seed;
    size_t first;
};

struct drawing {
    int class;
    double x, y, radius, cosine, sine, brightness;
};

enum { NUMBERS_PER_IMAGE = 6 };

static double between(const struct series *series, size_t index, int number, double low,
                      double high)
{
    uint64_t at = (uint64_t)(series->first + index) * NUMBERS_PER_IMAGE + (uint64_t)number;
    return low + (high - low) * random_uniform(series->seed, RANDOM_IMAGES, at);
}

/* Signed distances from the edge of shapes of size 1 around (0, 0), negative inside. */
static double circle(double x, double y)
{
    return hypot(x, y) - 1.0;
}

static double square_edge(double x, double y)
{
    return fmax(fabs(x), fabs(y)) - 0.85;
}

static double triangle(double x, double y)
{
    /* Three half planes at 120 degrees. */
    double right = 0.866 * x + 0.5 * y, left = -0.866 * x + 0.5 * y;
    return fmax(fmax(right, left), -y) - 0.55;
}

static double cross(double x, double y)
{
    double upright = fmax(fabs(x) - 0.3, fabs(y) - 1.0), flat = fmax(fabs(x) - 1.0, fabs(y) - 0.3);
    return fmin(upright, flat);
}

static double (*const edges[SHAPES_CLASSES])(double x, double y) = {circle, square_edge, triangle,
                                                                    cross};

static struct drawing draw_shape(const struct series *series, size_t index, int image)
{
    double angle = between(series, index, 3, -0.4, 0.4),
           radius = between(series, index, 2, 0.22, 0.36) * image;
    return (struct drawing){
        .class = (int)between(series, index, 0, 0, SHAPES_CLASSES),
        .radius = radius,
        .x = between(series, index, 1, 1.1 * radius, image - 1.1 * radius),
        .y = between(series, index, 4, 1.1 * radius, image - 1.1 * radius),
        .cosine = cos(angle),
        .sine = sin(angle),
        .brightness = between(series, index, 5, 0.6, 1.0),
    };
}

static void read_shape(const struct dataset *dataset, size_t index, float *pixels, int32_t *label)
{
    struct drawing d = draw_shape(dataset->state, index, dataset->image);
    for (int row = 0; row < dataset->image; row++) {
        for (int column = 0; column < dataset->image; column++) {
            double x = column + 0.5 - d.x, y = d.y - row - 0.5;
            double turned_x = (d.cosine * x + d.sine * y) / d.radius,
                   turned_y = (d.cosine * y - d.sine * x) / d.radius;
            /* The edge falls off over one pixel, so that shapes are not jagged. */
            double covered = 0.5 - edges[d.class](turned_x, turned_y) * d.radius;
            double light = d.brightness * fmin(fmax(covered, 0.0), 1.0);
            pixels[row * dataset->image + column] = (float)(2.0 * light - 1.0);
        }
    }
    *label = d.class;
}

static void close_shapes(struct dataset *dataset)
{
    free(dataset->state);
}

void shapes_open(struct dataset *dataset, uint64_t seed, size_t first, size_t count, int image)
{
    struct series *series = allocate(1, sizeof *series);
    *series = (struct series){.seed = seed, .first = first};
    *dataset = (struct dataset){.count = count,
                                .image = image,
                                .classes = SHAPES_CLASSES,
                                .state = series,
                                .read = read_shape,
                                .close = close_shapes};
}
