/* test_mangled.c: parameters as mangled names tell them. The names are g++'s and nvcc's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "interpose/memory/mangled.h"

/* r: pointer that reads, w: that may write, v: number, c: class, 2: array of 2 pointers; NULL: not
 * known. */
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
        for (int k = 0; k < count; k++)
            text[k] = parameters[k].pointers ? (char)('0' + parameters[k].pointers)
                                             : "vcrw"[parameters[k].kind];
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
    char copy[256];
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_read),
                                       cmocka_unit_test(damaged_names_do_no_harm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
