/* test_mangled.c: parameters as mangled names tell them. The names are g++'s and nvcc's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "interpose/memory/mangled.h"
#include "interpose/memory/by_value.h"

/* r: pointer that reads, w: that may write, v: number, c: class, 2: array of 2 pointers, t: tensor,
 * k: tensor of const; NULL: not known. */
static const struct {
    const char *name, *kinds;
} names[] = {
    {"_Z3addPKfPfi", "rwv"},   /* add(float const*, float*, int) */
    {"_Z3addPKfS0_Pf", "rrw"}, /* add(const float*, const float*, float*) */
    {"_Z3addPKfPfS0_S1_", "rwrw"},
    {"_Z4adamPfPKfS_S_fffm", "wrwwvvvv"},
    {"_Z5emptyv", ""},
    {"_ZN3foo3bar4kernEPKdPd", "rw"},        /* foo::bar::kern(double const*, double*) */
    {"_ZN3foo3bar4kernEPNS_1TEPKS1_", "wr"}, /* (foo::T*, foo::T const*) */
    {"_Z4fillIfEvPT_S0_m", "wvv"},           /* void fill<float>(T*, T, unsigned long) */
    {"_Z4castIf6__halfEvPKT_PT0_i", "rwv"},
    {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_"
     "T1_",
     "vc1"},
    {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIffEENS_"
     "6detail5ArrayIPcLi2EEE"
     "EEviT0_T1_",
     "vc2"},
    {"_Z1fSt5arrayIPKfLm3EES_IPfLm2EEm", "32v"},
    {"_Z3run3CapS_j", "ccv"},
    {"_Z3vecILi4E2FUSt5arrayIPcLm2EEEviT0_T1_", "vc2"},
    {"_Z6structP4PairPKS_", "wr"},
    {"_ZN12_GLOBAL__N_14kernEPKvPv", "rw"},
    {"_ZL6hiddenPKfPf", "rw"},
    {"_ZN2at6native43_GLOBAL__N__58383465_10_Sorting_cu_"
     "8150cb8f12gatherMedianIN3c104HalfEmLin1EEEvNS_4cuda6detail10"
     "TensorInfoIT_T0_EENS7_IlS9_EENS7_IKS8_S9_EES9_S9_S9_b",
     "ttkvvvv"},
    {"_ZN2at6native31max_unpooling3d_backward_kernelIfEEvPKT_"
     "lllN5torch10headeronly6detail27GenericPackedTensorAccessorINS7_14"
     "TensorAccessorIN3c108ArrayRefIlEElLm3ENS6_16DefaultPtrTraitsElEENS_"
     "6detail16IndexBoundsCheckILm4ElEElLm4ESD_lEENS8_INS9_ISC_S2_"
     "Lm3ESD_lEESH_S2_Lm4ESD_lEEi",
     "rvvvttv"},
    {"_ZN2at6native33batch_norm_transform_input_kernelIfffLb1EiEEvN5torch10headeronly6"
     "detail27GenericPackedTensorAccessorINS4_14TensorAccessorIN3c108ArrayRefIlEEKT_Lm"
     "2ENS3_17RestrictPtrTraitsET3_EENS_6detail16IndexBoundsCheckILm3ESD_EESB_Lm3ESC_S"
     "D_EENS5_INS6_IS9_SA_Lm2ESC_SD_EESH_SA_Lm3ESC_SD_EENS5_INS6_IS9_NSt11conditionalI"
     "XT2_ET1_T0_E4typeELm0ESC_SD_EENSG_ILm1ESD_EESP_Lm1ESC_SD_EESS_NS5_INS6_IS9_KSN_L"
     "m0ESC_SD_EESR_ST_Lm1ESC_SD_EESV_SM_",
     "ktttkkv"},
    {"_Z4pairPPKfPKPf", "wr"}, /* (float const**, float* const*) */
    {"_Z3refRKfPVf", "cw"},
    {"_Z5arrayPA4_KfPA4_f", "rw"},
    {"_Z2fpPFvPfES_", "ww"},
    {"_Z4halfPKDF16_PDF16b", "rw"},
    {"extern_c_kernel", NULL},
    {"_Z", NULL},
    {"_Z3addPKfS9_", NULL},
    {"_Z3addPK", NULL},
    {"_Z99short", NULL},
    {"_ZN3fooE3bar", "c"},
    {"_ZN3foo", NULL},
    {"_Z4fillIXsr3fooE3barEEvPf", NULL},
};

static void names_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct mangled_parameter parameters[16];
        char text[17] = "";
        int count = mangled_parameters(names[i].name, parameters, 16);
        for (int k = 0; k < count; k++) {
            text[k] = parameters[k].pointers ? (char)('0' + parameters[k].pointers)
                                             : "vcrw"[parameters[k].kind];
            if (parameters[k].is_view)
                text[k] = parameters[k].of_const ? 'k' : 't';
        }
        if (!names[i].kinds ? count != -1 : strcmp(text, names[i].kinds) || count < 0)
            fail_msg("%s: expected %s, got %s (%d)", names[i].name,
                     names[i].kinds ? names[i].kinds : "unknown", text, count);
    }
}

/* Names cut anywhere, and with one letter changed, are read without leaving the string. */
static void damaged_names_do_no_harm(void **state)
{
    (void)state;
    struct mangled_parameter parameters[16];
    char copy[512];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i].name);
        for (size_t at = 0; at < length; at++) {
            memcpy(copy, names[i].name, at);
            copy[at] = 0;
            assert_true(mangled_parameters(copy, parameters, 16) <= 16);
            for (int c = 32; c < 127; c++) {
                strcpy(copy, names[i].name);
                copy[at] = (char)c;
                assert_true(mangled_parameters(copy, parameters, 16) <= 16);
            }
        }
    }
}

/* What precedes the addresses of a strided kernel of PyTorch may be left over from an earlier
 * launch. */
static void addresses_in_structs(void **state)
{
    (void)state;
    static const char copy[] = "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_"
                               "nocastINS0_11FillFunctorIfEEEEvRNS_18TensorIteratorBaseERKT_EUliE_"
                               "EEviT1_";
    static const char sum[] =
        "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIlNS0_14func_wrapper_tIlZNS0_11sum_"
        "functorIlllEclERNS_14TensorIteratorEEUlllE_EEjlLi4ELi4EEEEEvT1_";
    static const char get[] = "_ZN2at6native24index_elementwise_kernelILi128ELi4EZNS0_16gpu_index_"
                              "kernelIZNS0_17index_kernel_implINS0_10OpaqueTypeILi4EEEEEv";
    static const char gather[] = "_ZN2at6native34_scatter_gather_elementwise_kernelILi128ELi8EZNS0_"
                                 "36_cuda_scatter_gather_internal_kernelILb0ENS0_10OpaqueType";
    static const struct {
        const char *name;
        uint32_t bytes, offset, count;
    } cases[] = {
        {get, 1240, 608, 2}, {get, 623, 0, 0},    {gather, 664, 608, 3},
        {gather, 663, 0, 0}, {copy, 416, 408, 1}, {copy, 424, 408, 1},
        {copy, 528, 504, 2}, {copy, 632, 608, 3}, {copy, 680, 608, 3},
        {copy, 320, 0, 0},   {copy, 8, 0, 0},     {"_ZN2at6native12index_kernelEv", 528, 0, 0},
        {sum, 1056, 992, 6}, {sum, 64, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct by_value found = by_value_addresses(cases[i].name, cases[i].bytes);
        if (found.offset != cases[i].offset || found.count != cases[i].count)
            fail_msg("%u bytes: %u addresses at %u", cases[i].bytes, found.count, found.offset);
    }
}

/* Ranks that pass keys and values on while they use them do nothing wrong. */
static void attention_reads_its_inputs(void **state)
{
    (void)state;
    static const char effective[] =
        "_Z39fmha_cutlassF_f32_aligned_64x64_rf_sm80N22PyTorchMemEffAttention15AttentionKernelIfE";
    assert_int_equal(by_value_addresses(effective, 272).inputs_end, 64);
    assert_int_equal(
        by_value_addresses("_ZN13pytorch_flash16flash_fwd_kernelI23Flash_fwd", 472).inputs_end, 24);
    assert_int_equal(by_value_addresses("_Z5flashPf", 472).inputs_end, 0);
}

/* Templates within templates, and pointers to pointers: how deep depends on the name alone. */
static void *read_deep_names(void *unused)
{
    enum { LEVELS = 20000, KINDS = 3 };
    static const char *const pieces[KINDS] = {"1aI", "P", "1aB1a"};
    static char name[LEVELS * 6 + 64];
    struct mangled_parameter parameters[1];
    for (int kind = 0; kind < KINDS; kind++) {
        char *at = name + sprintf(name, "_Z1f");
        for (int i = 0; i < LEVELS; i++)
            at += sprintf(at, "%s", pieces[kind]);
        *at++ = 'f';
        for (int i = 0; i < LEVELS && !kind; i++)
            *at++ = 'E';
        *at = '\0';
        assert_int_equal(mangled_parameters(name, parameters, 1), -1);
    }
    return unused;
}

/* The launching thread's stack may be as small as a thread's may be. */
static void test_small_stack(void **state)
{
    (void)state;
    pthread_t thread;
    pthread_attr_t attributes;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)),
                     0);
    assert_int_equal(pthread_create(&thread, &attributes, read_deep_names, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_stack), cmocka_unit_test(names_are_read),
        cmocka_unit_test(attention_reads_its_inputs), cmocka_unit_test(addresses_in_structs),
        cmocka_unit_test(damaged_names_do_no_harm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
