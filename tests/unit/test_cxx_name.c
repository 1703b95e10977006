/* C++ functions as people wrote them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/trace/cxx_name.h"

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *symbol, *name, *last;
    } cases[] = {
        {"plain_c_name", "plain_c_name", "plain_c_name"},
        {"", "", ""},
        {"_Z4stepi", "step", "step"},
        {"_ZN3net7Trainer4stepERKNS_5BatchE", "net::Trainer::step", "step"},
        {"_ZNK3net7Trainer4sizeEv", "net::Trainer::size", "size"},
        {"_ZN12_GLOBAL__N_14stepEPf", "(anonymous namespace)::step", "step"},
        {"_ZN3net7TrainerIfE4stepEv", "net::Trainer<float>::step", "step"},
        {"_ZN3net7reduceAIfEEvPT_i", "net::reduceA<float>", "reduceA<float>"}, /* "void " is cut */
        {"_ZN3netlsERSoRKNS_5BatchE", "net::operator<<", "operator<<"},
        {"_ZN3net5BatchptEv", "net::Batch::operator->", "operator->"},
        {"_ZN3net5BatchclEi", "net::Batch::operator()", "operator()"},
        {"_ZZN3net4mainEvENKUliE_clEi", "net::main()::{lambda(int)#1}::operator()", "operator()"},
        {"_ZN3net7TrainerC2Ei", "net::Trainer::Trainer", "Trainer"},
        {"_ZNSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS5_EE9push_"
         "backERKS5_",
         "std::vector<...>::push_back", "push_back"},
        {"_ZZN8training7TrainerIfNS_7OptionsEE4stepERKS1_iENKUliE_clEi",
         "training::Trainer<...>::step()::{lambda()#1}::operator()", "operator()"},
        {"_Z4stepi.part.0", "step", "step"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[256];
        assert_string_equal(cxx_name(cases[i].symbol, name, sizeof name), cases[i].name);
        assert_string_equal(cxx_name_last(name), cases[i].last);
    }
}

static void test_standard_library(void **state)
{
    (void)state;
    assert_true(cxx_name_is_standard("_ZNKSt8functionIFviEEclEi"));
    assert_true(cxx_name_is_standard("_ZSt13__invoke_implIvRFvvEEvv"));
    assert_false(cxx_name_is_standard("_ZN3net7Trainer4stepERKSt6vectorIiSaIiEE"));
    assert_false(cxx_name_is_standard("std_step"));
}

/* A symbol that was cut can't be demangled: its identifiers are there all the same. */
static void test_cut_symbols(void **state)
{
    (void)state;
    char name[64], small[8];
    assert_string_equal(cxx_name("_ZN3net7TrainerINS_5Ba", name, sizeof name), "net::Trainer");
    assert_string_equal(cxx_name("_Z", name, sizeof name), "_Z");
    assert_string_equal(cxx_name("_ZN3net7Trainer4stepEv", small, sizeof small), "net::Tr");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_standard_library),
                                       cmocka_unit_test(test_cut_symbols)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
