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
    assert_non_null(strstr(version_fact_find(DC204, (const int[]){22599, 0})->words, "by events"));
    assert_non_null(
        strstr(version_fact_find(DC204, (const int[]){22600, 0})->words, "LAUNCH_ORDER_IMPLICIT"));
    assert_non_null(
        strstr(version_fact_find(DC405, (const int[]){22907, 0})->words, "Duplicate GPU"));
    assert_non_null(
        strstr(version_fact_find(DC405, (const int[]){23000, 0})->words, "MULTI_RANK_GPU"));
    assert_null(version_fact_find(DC405, (const int[]){0, 0})); /* not known */
    assert_null(version_fact_find(DC201, (const int[]){22600, 0}));
    assert_null(version_fact_find(DC210, (const int[]){22600, 0})); /* PyTorch's is not known */
    assert_non_null(strstr(version_fact_find(DC210, (const int[]){0, 20109})->words, "30 minutes"));
    assert_non_null(strstr(version_fact_find(DC210, (const int[]){0, 21000})->words, "10 minutes"));
}

static void ranges_in_words(void **state)
{
    const struct version_fact since = {DC201, LIBRARY_TORCH, 20200, 0, "", ""},
                              before = {DC201, LIBRARY_NCCL, 0, 22600, "", ""},
                              between = {DC201, LIBRARY_NCCL, 22400, 23000, "", ""};
    char text[VERSION_RANGE_BYTES];
    (void)state;
    assert_string_equal(version_fact_range(&since, text, sizeof text),
                        "With PyTorch 2.2 and later");
    assert_string_equal(version_fact_range(&before, text, sizeof text), "With NCCL before 2.26");
    assert_string_equal(version_fact_range(&between, text, sizeof text),
                        "With NCCL 2.24 and later, before 2.30");
    assert_string_equal(version_fact_job(&before, (const int[]){22809, 0}, text, sizeof text),
                        "With NCCL 2.28.9, which the job has");
}

/* Each is about some versions, and names the document in the version in which it holds. */
static void facts_of_a_code_do_not_overlap(void **state)
{
    (void)state;
    for (const struct version_fact *fact = version_fact_next(NULL), *other; fact;
         fact = version_fact_next(fact)) {
        assert_non_null(check_find(code_name(fact->code)));
        assert_true(fact->since || fact->before);
        assert_true(!fact->before || fact->since < fact->before);
        assert_non_null(strpbrk(fact->source, "0123456789"));
        for (other = version_fact_of_code(fact->code, fact); other;
             other = version_fact_of_code(fact->code, other))
            assert_true(other->library != fact->library ||
                        (fact->before && other->since >= fact->before));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_chooses_the_fact),
        cmocka_unit_test(ranges_in_words),
        cmocka_unit_test(facts_of_a_code_do_not_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
