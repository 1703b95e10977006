/* distance.c: the sliced Wasserstein distance between two sets of images. */
#include "trainer/distance.h"

#include <math.h>
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/random.h"

enum { DIRECTIONS = 64, SEED = 1 };

/* Directions are uniform: normal coordinates, scaled to length 1. */
static void draw_direction(float *direction, int pixels, int number)
{
    double square = 0;
    for (int i = 0; i < pixels; i++) {
        direction[i] = random_normal(SEED, RANDOM_DIRECTIONS,
                                     (uint64_t)number * (uint64_t)pixels + (uint64_t)i);
        square += (double)direction[i] * (double)direction[i];
    }
    for (int i = 0; i < pixels; i++)
        direction[i] /= (float)sqrt(square);
}

static int compare_distances(const void *a, const void *b)
{
    float one = *(const float *)a, other = *(const float *)b;
    return (one > other) - (one < other);
}

static void project(const float *images, int count, int pixels, const float *direction,
                    float *along)
{
    for (int i = 0; i < count; i++) {
        const float *image = images + (size_t)i * (size_t)pixels;
        float sum = 0;
        for (int k = 0; k < pixels; k++)
            sum += image[k] * direction[k];
        along[i] = sum;
    }
    qsort(along, (size_t)count, sizeof *along, compare_distances);
}

double image_distance(const float *one, const float *other, int count, int pixels)
{
    float *direction = allocate((size_t)pixels, sizeof *direction);
    float *along_one = allocate((size_t)count, sizeof *along_one),
          *along_other = allocate((size_t)count, sizeof *along_other);
    double sum = 0;
    for (int number = 0; number < DIRECTIONS; number++) {
        draw_direction(direction, pixels, number);
        project(one, count, pixels, direction, along_one);
        project(other, count, pixels, direction, along_other);
        for (int i = 0; i < count; i++)
            sum += fabs((double)along_one[i] - (double)along_other[i]);
    }
    free(along_other);
    free(along_one);
    free(direction);
    return sum / ((double)DIRECTIONS * count);
}
