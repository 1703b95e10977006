/* elementwise.c: the twins of elementwise.def. */
#include "kernels/casts.h"
#include "kernels/cpu/twins.h"
#include "kernels/each.h"

#include <math.h>

/* An output may be an input (in place), but only at the same index, so elements are independent:
 * omp simd. */
#define TAKE_ONE(type, name) TAKE(type, name);
#define ELEMENT_KERNEL(name, letters, body, ...)                      \
    void twin_##name(const struct twin_grid *grid, void *const *args) \
    {                                                                 \
        (void)grid;                                                   \
        TAKE(size_t, count);                                          \
        EACH(TAKE_ONE, __VA_ARGS__)                                   \
        _Pragma("omp simd") for (size_t i = 0; i < count; i++)        \
        {                                                             \
            body;                                                     \
        }                                                             \
    }
#define ELEMENT ELEMENT_KERNEL
#include "kernels/elementwise.def"
