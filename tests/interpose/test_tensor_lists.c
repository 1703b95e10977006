/* test_tensor_lists.c: where kernels of PyTorch list their tensors. The names are those of
 * PyTorch 2.10, the sizes those of its structs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "interpose/memory/tensor_lists.h"

#define FOREACH                                                                               \
    "_ZN2at6native51_GLOBAL__N__d9d46141_18_ForeachReduceOp_cu_b83ec48c25multi_tensor_apply_" \
    "kernelINS1_"
#define CAT                                                                                        \
    "_ZN2at6native40_GLOBAL__N__0f1a8107_8_Shape_cu_49f7391c30CatArrayBatchedCopy_vectorizedINS1_" \
    "10OpaqueType"

static const struct {
    const char *name;
    uint32_t parameter, bytes;
    struct tensor_lists expected;
} cases[] = {
    /* In place, out of place, and what only reads. */
    {FOREACH "18TensorListMetadataILi1EEENS1_"
             "21BinaryOpScalarFunctorIfLi1ELi1ELi0EEEJSt10multipliesIfEfEEEvT_T0_DpT1_",
     0,
     3368,
     {110, 1, 1, 0, 1760, 320, 1}},
    {FOREACH "18TensorListMetadataILi3EEENS1_"
             "24BinaryOpListAlphaFunctorIfLi3ELi2ELi2EEEJSt4plusIfEfEEEvT_T0_DpT1_",
     0,
     3144,
     {48, 3, 4, 0, 1536, 320, 1}},
    {FOREACH "18TensorListMetadataILi2EEENS1_11CopyFunctorIN3c108BFloat16EfLi2ELi1ELi1EEEJNS0_"
             "4CopyIS4_fEEEEEvT_T0_DpT1_",
     0,
     3144,
     {64, 2, 2, 0, 1536, 320, 1}},
    {FOREACH "18TensorListMetadataILi1EEENS0_13LpNormFunctorIfLNS0_"
             "8NormTypeE2EfLi1ELi1ELi0EEEJPfiEEEvT_T0_DpT1_",
     0,
     3368,
     {110, 1, 0, 0, 1760, 320, 1}},
    /* With a number for each tensor: 4 bytes, 16 bytes. */
    {FOREACH "28TensorListScalarListMetadataIfLi4EEENS1_"
             "28PointwiseOpScalarListFunctorIfLi4ELi3ELi3EEEJSt10multipliesIfEEEEvT_T0_"
             "DpT1_",
     0,
     3184,
     {36, 4, 8, 0, 1584, 320, 1}},
    {FOREACH "28TensorListScalarListMetadataIN3c107complexIdEELi2EEENS1_"
             "25BinaryOpScalarListFunctorIS6_Li2ELi1ELi1EEEJSt4plusIS6_"
             "EEEEvT_T0_DpT1_",
     0,
     4000,
     {0}},
    /* Optimizers: gradients are read, and so are the counts of steps. */
    {FOREACH "32FusedOptimizerTensorListMetadataILi4EEENS1_20FusedAdamMathFunctorIfLi4ELNS0_9ADAM_"
             "MODEE0ELb0EEEJPKfdddddbS9_S9_EEE"
             "vT_T0_DpT1_",
     0,
     3336,
     {36, 4, 0x1d, 1440, 1728, 320, 1}},
    {FOREACH
     "18TensorListMetadataILi2EEENS1_19FusedSgdMathFunctorIfLi2EEEJddPfddbbbS7_S7_EEEvT_T0_DpT1_",
     0,
     3144,
     {64, 2, 0x1d, 0, 1536, 320, 1}},
    /* Parameters of up to 32 KiB, from PyTorch 2.14 on. */
    {FOREACH "18TensorListMetadataILi2EEENS1_"
             "21BinaryOpScalarFunctorIfLi2ELi1ELi1EEEJSt4plusIfEfEEEvT_T0_DpT1_",
     0,
     24200,
     {448, 2, 2, 0, 10752, 2240, 2}},
    /* Of another release, of another parameter, and of another kernel. */
    {FOREACH "18TensorListMetadataILi1EEENS1_11ZeroFunctorIfLi1ELi1ELi0EEEJEEEvT_T0_DpT1_",
     0,
     4096,
     {0}},
    {FOREACH "18TensorListMetadataILi9EEENS1_11ZeroFunctorIfLi9ELi1ELi0EEEJEEEvT_T0_DpT1_",
     0,
     3368,
     {0}},
    {FOREACH "18TensorListMetadataILi1EEENS1_11ZeroFunctorIfLi1ELi1ELi0EEEJEEEvT_T0_DpT1_",
     1,
     3368,
     {0}},
    {"_ZN2at6native12index_kernelEv", 0, 3368, {0}},
    {CAT "ILj16EEEjLi1ELi128ELi1ELi16ELi1EEEvPcNS1_25CatArrInputTensorMetadataIT_T0_XT2_EXT3_"
         "EEENS1_16TensorSizeStrideIS8_Lj4EEEiS8_",
     1,
     2720,
     {128, 1, 0, 0, 0, 0, 0}},
    {CAT "ILj16EEEjLi2ELi64ELi64ELi16ELi1EEEvPcNS1_25CatArrInputTensorMetadataIT_T0_XT2_EXT3_"
         "EEENS1_16TensorSizeStrideIS8_Lj4EEEiS8_",
     1,
     3392,
     {64, 1, 0, 0, 0, 0, 0}},
    {CAT "ILj16EEEjLi1ELi128ELi1ELi16ELi1EEEvPcNS1_25CatArrInputTensorMetadataIT_T0_XT2_EXT3_"
         "EEENS1_16TensorSizeStrideIS8_Lj4EEEiS8_",
     1,
     512,
     {0}},
};

static void lists_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tensor_lists found =
            tensor_lists_find(cases[i].name, cases[i].parameter, cases[i].bytes);
        const struct tensor_lists *expected = &cases[i].expected;
        if (found.room != expected->room || found.lists != expected->lists ||
            found.written != expected->written || found.more_read != expected->more_read ||
            found.blocks != expected->blocks || found.blocks_max != expected->blocks_max ||
            found.index_bytes != expected->index_bytes)
            fail_msg("%s: %u lists of %u, written %x, more at %u, blocks at %u", cases[i].name,
                     found.lists, found.room, found.written, found.more_read, found.blocks);
    }
}

/* A kernel's name is read from a file: any of its beginnings must do no harm. */
static void damaged_names_have_none(void **state)
{
    (void)state;
    char copy[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t length = 0; length < strlen(cases[i].name); length++) {
            memcpy(copy, cases[i].name, length);
            copy[length] = 0;
            assert_true(tensor_lists_find(copy, cases[i].parameter, cases[i].bytes).lists <= 5);
        }
}

/* Only what belongs to the launch's tensors was written by its caller. */
static void rest_is_not_read(void **state)
{
    (void)state;
    char metadata[3368];
    memset(metadata, 0xff, sizeof metadata);
    const struct tensor_lists foreach = {110, 1, 1, 0, 1760, 320, 1}, cat = {128, 1, 0, 0, 0, 0, 0};
    const uint8_t tensors[] = {0, 0, 1, 2, 2};
    memcpy(metadata + foreach.blocks, tensors, sizeof tensors);
    assert_int_equal(tensor_lists_count(&foreach, metadata, sizeof tensors, 1), 3);
    assert_int_equal(tensor_lists_count(&foreach, metadata, 2, 1), 1);
    assert_int_equal(tensor_lists_count(&foreach, metadata, 100000, 1), 110);
    const struct tensor_lists large = {448, 2, 2, 0, 1760, 2240, 2};
    memcpy(metadata + large.blocks, (uint16_t[]){0, 1, 300}, 3 * sizeof(uint16_t));
    assert_int_equal(tensor_lists_count(&large, metadata, 3, 1), 301);
    assert_int_equal(tensor_lists_count(&cat, metadata, 64, 7), 7);
    assert_int_equal(tensor_lists_count(&cat, metadata, 64, 1000), 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_are_found),
                                       cmocka_unit_test(damaged_names_have_none),
                                       cmocka_unit_test(rest_is_not_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
