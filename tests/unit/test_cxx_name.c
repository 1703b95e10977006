/* C++ functions as people wrote them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

static void test_types(void **state)
{
    (void)state;
    char name[64], small[8];
    assert_string_equal(cxx_name_of_type("St13runtime_error", name, sizeof name),
                        "std::runtime_error");
    assert_string_equal(cxx_name_of_type("N3net6FailedE", name, sizeof name), "net::Failed");
    assert_string_equal(cxx_name_of_type("i", name, sizeof name), "int");
    assert_string_equal(cxx_name_of_type("net::Failed", name, sizeof name), "net::Failed");
    assert_string_equal(cxx_name_of_type("N3net6FailedE", small, sizeof small), "net::Fa");
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

/* 3^50 characters: no memory and no time of this machine are enough. */
static void test_symbol_that_explodes(void **state)
{
    (void)state;
    static const char digit[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char symbol[320] = "_Z1f1AIiiiE", name[256];
    for (int i = 1; i < 18; i++)
        snprintf(symbol + strlen(symbol), sizeof symbol - strlen(symbol), "S_IS%c_S%c_S%c_E",
                 digit[i - 1], digit[i - 1], digit[i - 1]);
    assert_string_equal(cxx_name(symbol, name, sizeof name), "f");
    assert_true(strlen(symbol) < 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_types),
                                       cmocka_unit_test(test_standard_library),
                                       cmocka_unit_test(test_cut_symbols),
                                       cmocka_unit_test(test_symbol_that_explodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
