/* Templates of lines in logs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/import/scan.h"

static const struct scan_case {
    const char *text, *template;
    bool fits;
    int begin, bytes; /* of what fits */
    int64_t rank;     /* 99: there is none */
} cases[] = {
    {"abc", "b", true, 1, 1, 99},
    {"abc", "d", false, 0, 0, 99},
    {"", "a", false, 0, 0, 99},
    {"rank 7 died", "rank {i:rank}", true, 0, 6, 7},
    {"rank rank 7", "rank {i:rank}", true, 5, 6, 7},
    {"exit:  -9.", "exit:{i:rank}", true, 0, 9, -9},
    {"rank x", "rank {i:rank}", false, 0, 0, 99},
    {"rank 99999999999999999999", "rank {i:rank}", false, 0, 0, 99},
    {"call ncclSend(4) on 3", "call {w:call}({i:} on {i:rank}", false, 0, 0, 99},
    {"call ncclSend(4) on 3", "call {w:call}({i:}) on {i:rank}", true, 0, 21, 3},
    {"a 1 b a 2 c", "a {i:rank}{r:} c", true, 0, 11, 1},
    {"a 1 b a 2 c", "a {i:rank} c", true, 6, 5, 2},
    {"sum: all of it\r\n", "sum: {r:what}", true, 0, 14, 99},
    {"3 of 8 clients joined", "{r:} clients joined", true, 0, 21, 99},
    {"rank 4, pid 12", "rank {w:}{?, pid {i:rank}}", true, 0, 14, 12},
    {"rank 4", "rank {i:rank}{?, pid {i:pid}}", true, 0, 6, 4},
    {"rank 4 on x", "rank{? {i:rank}} on", true, 0, 9, 4},
    {"rank on x", "rank{? {i:rank}} on", true, 0, 7, 99},
};

static void templates_fit_as_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scanned scanned;
        bool fits = scan(cases[i].text, cases[i].template, &scanned);
        if (fits != cases[i].fits)
            fail_msg("'%s' in '%s': %d", cases[i].template, cases[i].text, fits);
        if (!fits)
            continue;
        assert_int_equal(scanned.begin - cases[i].text, cases[i].begin);
        assert_int_equal(scanned.end - scanned.begin, cases[i].bytes);
        assert_int_equal(scanned_number(&scanned, "rank", 99), cases[i].rank);
    }
}

static void too_many_fields_fit_nothing(void **state)
{
    struct scanned scanned;
    (void)state;
    assert_true(scan("1 2 3 4 5 6 7 8", "{i:}{i:}{i:}{i:}{i:}{i:}{i:}{i:}", &scanned));
    assert_int_equal(scanned.fields, SCAN_FIELDS_MAX);
    assert_false(scan("1 2 3 4 5 6 7 8 9", "{i:}{i:}{i:}{i:}{i:}{i:}{i:}{i:}{i:}", &scanned));
}

/* A line without what follows a {r:...} is gone through once, not from each of its places. */
static void long_lines_take_no_square_of_time(void **state)
{
    enum { BYTES = 1 << 20 };
    static char line[BYTES];
    struct scanned scanned;
    (void)state;
    memset(line, 'a', sizeof line - 1);
    assert_false(scan(line, "{r:} clients joined", &scanned));
    assert_false(scan(line, "a{r:}/{i:world}", &scanned));
    assert_false(scan(line, "a{r:}a{r:}/", &scanned));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_fit_as_they_say),
        cmocka_unit_test(too_many_fields_fit_nothing),
        cmocka_unit_test(long_lines_take_no_square_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
