/* twins.c: the table of all twins, made from the lists that the CUDA kernels are made from. */
#include "kernels/cpu/twins.h"

#include <cblas.h>

#define KERNEL(name, letters)                    {"ddpcheck_" #name, letters, twin_##name},
#define ELEMENT(name, letters, body, ...)        KERNEL(name, letters)
#define ELEMENT_KERNEL(name, letters, body, ...) KERNEL(name, letters)

__attribute__((visibility("default"))) const struct twin kernels_twins[] = {
#include "kernels/kernels.def"
#include "kernels/elementwise.def"
    {NULL, NULL, NULL}};

/* Several streams of several processes share the machine: a twin keeps to the thread it is called
 * from. */
static __attribute__((constructor)) void keep_blas_to_one_thread(void)
{
    openblas_set_num_threads(1);
}
