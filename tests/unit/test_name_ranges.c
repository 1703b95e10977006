/* Names of hosts and databases in one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/name_ranges.h"

#define ASSERT_RANGES(expected, ...)                       \
    assert_ranges(expected, (const char *[]){__VA_ARGS__}, \
                  sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

static void assert_ranges(const char *expected, const char **name, size_t count)
{
    char *text = name_ranges(name, names_sort(name, (int)count));
    assert_string_equal(text, expected);
    free(text);
}

static void numbers_become_ranges(void **state)
{
    (void)state;
    ASSERT_RANGES("n[001-003]", "n002", "n003", "n001");
    ASSERT_RANGES("n[1-3,7,10-11]", "n10", "n7", "n1", "n2", "n3", "n11");
    ASSERT_RANGES("trace/n[08-10].db", "trace/n10.db", "trace/n08.db", "trace/n09.db");
    ASSERT_RANGES("n[8-10]", "n10", "n8", "n9");
    ASSERT_RANGES("ip-10-0-3-[4-6]", "ip-10-0-3-4", "ip-10-0-3-6", "ip-10-0-3-5");
    ASSERT_RANGES("[7-9]", "7", "8", "9");
}

static void other_names_stay_as_they_are(void **state)
{
    (void)state;
    ASSERT_RANGES("vm", "vm");
    ASSERT_RANGES("n1, n2", "n2", "n1");
    ASSERT_RANGES("login, n[1-3]", "n1", "n2", "login", "n3");
    ASSERT_RANGES("a-gpu, b-gpu, c-gpu", "c-gpu", "a-gpu", "b-gpu");
    ASSERT_RANGES("n1.east, n1.west, n2.west", "n1.west", "n1.east", "n2.west");
    assert_ranges("", NULL, 0);
}

static void widths_are_kept_apart(void **state)
{
    (void)state;
    ASSERT_RANGES("n[1,01,001]", "n001", "n1", "n01");
    ASSERT_RANGES("n[9,010,11]", "n010", "n11", "n9");
}

static void each_name_counts_once(void **state)
{
    (void)state;
    ASSERT_RANGES("n[1-3]", "n1", "n2", "n1", "n3", "n3", "n1");
}

static void many_kinds_are_counted(void **state)
{
    (void)state;
    char text[30][8];
    const char *name[30];
    for (int i = 0; i < 30; i++) {
        snprintf(text[i], sizeof text[i], "%c%c", 'a' + i / 26, 'a' + i % 26);
        name[i] = text[i];
    }
    assert_ranges("aa, ab, ac, ad, ae, af, ag, ah, and 22 more", name, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_become_ranges),  cmocka_unit_test(other_names_stay_as_they_are),
        cmocka_unit_test(widths_are_kept_apart),  cmocka_unit_test(each_name_counts_once),
        cmocka_unit_test(many_kinds_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
