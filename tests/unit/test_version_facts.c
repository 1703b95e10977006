/* What a report says of the version of NCCL that the job has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/check.h"
#include "analyzer/version_facts.h"

static void the_version_chooses_the_fact(void **state)
{
    (void)state;
    assert_non_null(strstr(version_fact_find(DC204, 22599)->words, "by events"));
    assert_non_null(strstr(version_fact_find(DC204, 22600)->words, "LAUNCH_ORDER_IMPLICIT"));
    assert_non_null(strstr(version_fact_find(DC405, 22907)->words, "Duplicate GPU"));
    assert_non_null(strstr(version_fact_find(DC405, 23000)->words, "MULTI_RANK_GPU"));
    assert_null(version_fact_find(DC405, 0)); /* not known */
    assert_null(version_fact_find(DC201, 22600));
}

static void facts_of_a_code_do_not_overlap(void **state)
{
    (void)state;
    for (const struct version_fact *fact = version_fact_next(NULL); fact;
         fact = version_fact_next(fact)) {
        assert_non_null(check_find(code_name(fact->code)));
        assert_true(!fact->before || fact->since < fact->before);
        int first = fact->since ? fact->since : 1, last = fact->before ? fact->before - 1 : 99999;
        assert_ptr_equal(version_fact_find(fact->code, first), fact);
        assert_ptr_equal(version_fact_find(fact->code, last), fact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_chooses_the_fact),
        cmocka_unit_test(facts_of_a_code_do_not_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
