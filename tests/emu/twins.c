/* Twins for the tests' kernels. */
#include <string.h>

#include "kernels/twin.h"

static void add_scaled(const struct twin_grid *grid, void *const *args)
{
    float factor = *(float *)args[0];
    const float *x = *(const float **)args[1];
    float *y = *(float **)args[2];
    int count = *(int *)args[3];

    (void)grid;
    for (int i = 0; i < count; i++)
        y[i] += factor * x[i];
}

/* Writes how the grid was cut, and the sum of the struct's numbers. */
static void describe(const struct twin_grid *grid, void *const *args)
{
    const int *numbers = args[0];
    long *out = *(long **)args[1];

    out[0] = grid->grid[0];
    out[1] = grid->block[0];
    out[2] = (long)grid->shared_bytes;
    out[3] = numbers[0] + numbers[1] + numbers[2];
    out[4] = *(long *)args[2];
}

const struct twin kernels_twins[] = {
    {"add_scaled", "fpPi", add_scaled},
    {"describe", "[12]Pl", describe},
    {NULL, NULL, NULL},
};
