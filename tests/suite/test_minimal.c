/* The suite's minimal programs as ddpcheck explain shows them. */
#include "tests/suite/minimal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void each_is_a_whole_program_and_its_fix(void **state)
{
    int count = 0;

    (void)state;
    for (const struct suite_minimal *minimal = suite_minimals; minimal->code; minimal++, count++) {
        const char *programs[] = {minimal->fault, minimal->difference};
        assert_true(minimal == suite_minimals || strcmp(minimal[-1].code, minimal->code) < 0);
        assert_ptr_equal(suite_minimal_find(minimal->code), minimal);
        assert_non_null(strstr(minimal->fault, "\nSUITE_CASE("));
        const char *changes = strchr(strstr(minimal->difference, "+++"), '\n');
        bool is_faulty = strcmp(minimal->code, "none") != 0;
        assert_true(is_faulty == (strstr(changes, "\n+") || strstr(changes, "\n-")));
        for (int i = 0; i < 2; i++) { /* behind a comment's begin, or "--- " */
            assert_memory_equal(programs[i] + (i ? strlen("--- ") : strlen("/* ")), minimal->code,
                                strlen(minimal->code));
            assert_null(strstr(programs[i], "TWIN"));
            assert_null(strstr(programs[i], "#else"));
            assert_null(strstr(programs[i], "expect:"));
            assert_null(strstr(programs[i], "/* here */"));
        }
    }
    assert_true(count >= 15);
    assert_null(suite_minimal_find("DC999"));
}

/* One known program, with the fault and without. */
static void fault_and_correct_program_differ(void **state)
{
    const struct suite_minimal *minimal = suite_minimal_find("DC103");

    (void)state;
    assert_string_equal(minimal->name, "match/precision_differs");
    assert_non_null(strstr(minimal->fault, "me->rank == 1 ? ncclFloat16 : ncclFloat32;\n"));
    assert_non_null(strstr(minimal->difference, "\n-    ncclDataType_t type = me->rank == 1 ?"));
    assert_non_null(strstr(minimal->difference, "\n+    ncclDataType_t type = ncclFloat32;\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_a_whole_program_and_its_fix),
        cmocka_unit_test(fault_and_correct_program_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
