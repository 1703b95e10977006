/* test_known_kernels.c: what is known of PyTorch's kernels. The names are those of PyTorch 2.10. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "interpose/memory/known_kernels.h"

#define VECTORIZED "_ZN2at6native29vectorized_elementwise_kernelILi4E"

static const struct {
    const char *name;
    enum pointer_order order;
    unsigned element;
} names[] = {
    {VECTORIZED "NS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_", POINTERS_WRITES_FIRST, 4},
    {VECTORIZED "NS0_11FillFunctorIdEESt5arrayIPcLm1EEEEviT0_T1_", POINTERS_WRITES_FIRST, 8},
    {VECTORIZED "NS0_11FillFunctorIbEESt5arrayIPcLm1EEEEviT0_T1_", POINTERS_WRITES_FIRST, 1},
    {VECTORIZED "NS0_11FillFunctorIN3c108BFloat16EEESt5arrayIPcLm1EEEEviT0_T1_",
     POINTERS_WRITES_FIRST, 2},
    {VECTORIZED "NS0_13AUnaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEESt5arrayIPcLm2EEEEvi"
                "T0_T1_",
     POINTERS_WRITES_FIRST, 1},
    {"_ZN2at6native27unrolled_elementwise_kernelINS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EELi4E23T"
     "rivialOffsetCalculatorILi2EjES6_ILi1EjENS0_6memory12LoadWithCastILi2EEENS9_13StoreWithCastI"
     "Li1EEEEEviT_T0_T2_T3_T4_T5_",
     POINTERS_WRITES_FIRST, 0},
    {"_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastINS0_11FillFunctorI"
     "fEEEEvRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_",
     POINTERS_WRITES_FIRST, 0},
    {"_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfZNS0_11sum_functo"
     "rIfffEclERNS_14TensorIteratorEEUlffE_EEjfLi4ELi4EEEEEvT1_",
     POINTERS_UNKNOWN, 0},
    {"_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb", POINTERS_WRITES_FIRST, 0},
    {"_ZN2at6native39unrolled_elementwise_kernel_for_multi_outputsILi2EE", POINTERS_UNKNOWN, 0},
    {"_ZN2at6native34_scatter_gather_elementwise_kernelILi128ELi4EE", POINTERS_UNKNOWN, 0},
    {"_ZN2at6native", POINTERS_UNKNOWN, 0},
    {"_ZN2at6native99elementwise_kernel", POINTERS_UNKNOWN, 0},
    {"_Z18elementwise_kernelPf", POINTERS_UNKNOWN, 0},
    {"", POINTERS_UNKNOWN, 0},
};

static void kernels_are_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct known_kernel known = known_kernel_find(names[i].name);
        if (known.order != names[i].order || known.element != names[i].element)
            fail_msg("%s: order %d, element %d", names[i].name, known.order, known.element);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_are_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
