/* DC904: what others said is passed on once, whatever numbers they said it with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

static void say(struct job *job, int rank, const char *text, enum said how)
{
    struct record record = {.api = API_notice_said};
    record.range.domain = intern(job, rank, "NCCL WARN");
    record.range.text = intern(job, rank, text);
    record.range.id = how;
    job_record(job, rank, record);
}

static void ranks_that_say_the_same(void **state)
{
    struct job *job = job_new(3);
    struct verdict verdict;
    (void)state;
    say(job, 0, "peer 10.0.0.1<58683> local size 496640 remote size 65536", SAID_WARNING);
    say(job, 2, "peer 10.0.0.17<5> local size 1 remote size 0x12ab", SAID_WARNING);
    say(job, 1, "", SAID_ERROR);
    const struct found *found = expect_in(job, &verdict, "DC904");
    assert_int_equal(found->severity, SEVERITY_WARNING);
    assert_string_equal(found->ranks[0], "0,2");
    assert_string_equal(found->what,
                        "NCCL WARN: peer 10.0.0.1<58683> local size 496640 remote size 65536");
    job_free(job);
}

static void different_words_are_two_findings(void **state)
{
    struct job *job = job_new(2);
    struct verdict verdict;
    (void)state;
    say(job, 0, "Mismatched collective detected", SAID_WARNING);
    say(job, 0, "Message truncated", SAID_ERROR);
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 2);
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_say_the_same),
        cmocka_unit_test(different_words_are_two_findings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
