/* Kernels' names as people read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/text.h"

static void kernel_names_lose_their_mangling(void **state)
{
    (void)state;
    static const struct {
        const char *mangled, *name;
    } cases[] = {
        {"_Z6addonePfPKfi", "addone"},
        {"_Z14conv2d_forward6conv2dPKfS1_Pf", "conv2d_forward"},
        {"_ZN2at6native4fillEPfm", "at::native::fill"},
        {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_4FillEEEviT0_",
         "at::native::vectorized_elementwise_kernel"},
        {"_ZN2at6native39_GLOBAL__N__5cd812b1_7_Loss_cu_5b0651e18nll_lossIffEEvPT_",
         "at::native::nll_loss"},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
         "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>)",
         "at::native::vectorized_elementwise_kernel"},
        {"at::native::(anonymous namespace)::Loss<float>::forward(float*, (anonymous)*)",
         "at::native::Loss::forward"},
        {"void at::native::detail::of_one_long_namespace_and_of_another::elementwise_kernel<8>()",
         "of_one_long_namespace_and_of_another::elementwise_kernel"},
        {"_ZN2at6native6detail36of_one_long_namespace_and_of_another18elementwise_kernelEPf",
         "of_one_long_namespace_and_of_another::elementwise_kernel"},
        {"Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"},
        {"<module>", "<module>"},
        {"plain_c_name", "plain_c_name"},
        {"_Z99short", "_Z99short"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[64];
        assert_string_equal(text_kernel_name(cases[i].mangled, name, sizeof name), cases[i].name);
    }
    char small[8];
    assert_string_equal(text_kernel_name("_Z6addonePf", small, sizeof small), "addone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernel_names_lose_their_mangling)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
