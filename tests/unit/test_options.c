/* The one option parser; built into the test, since cmd/ is a program and no library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cmd/options/options.c"

/* The tables as manual pages and completions: tests/package. */
int option_table_print(const struct command_options *options, const char *format, FILE *out)
{
    return options->count == 6 && strcmp(format, "man") == 0 && out == stdout ? 42 : -42;
}

struct values {
    bool quiet, verbose;
    const char *output;
    long number;
    double seconds;
    int choice;
};

static int parse(struct values *values, bool stop_at_argument, const char *line, char **arguments,
                 int *count)
{
    static char copy[512];
    static char *words[64];
    int argc = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *save, *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        words[argc++] = word;
    words[argc] = NULL;
    *values = (struct values){.choice = -1};
    const struct option_entry entries[] = {
        {"quiet", 'q', OPTION_FLAG, NULL, "h", &values->quiet},
        {"verbose", 'v', OPTION_FLAG, NULL, "h", &values->verbose},
        {"output", 'o', OPTION_TEXT, "DIR", "h", &values->output},
        {"number", 'n', OPTION_NUMBER, "N", "h", &values->number},
        {"timeout", 0, OPTION_SECONDS, "S", "h", &values->seconds},
        {"stacks", 0, OPTION_CHOICE, "off|nccl|all", "h", &values->choice},
    };
    const struct command_options options = {.command = "test",
                                            .arguments = "",
                                            .summary = "",
                                            .entries = entries,
                                            .count = OPTION_COUNT(entries),
                                            .stop_at_argument = stop_at_argument};
    char **argv = words;
    int status = options_parse(&options, &argc, &argv);
    for (int i = 0; i <= argc && status == OPTIONS_GO; i++)
        arguments[i] = argv[i];
    *count = argc;
    return status;
}

static void options_come_in_every_usual_form(void **state)
{
    (void)state;
    struct values values;
    char *arguments[64];
    int count;
    assert_int_equal(parse(&values, false,
                           "test -qv -oA first --number=7 --timeout 2.5s second --stacks all",
                           arguments, &count),
                     OPTIONS_GO);
    assert_true(values.quiet && values.verbose);
    assert_string_equal(values.output, "A");
    assert_int_equal(values.number, 7);
    assert_true(values.seconds == 2.5);
    assert_int_equal(values.choice, 2);
    assert_int_equal(count, 2);
    assert_string_equal(arguments[0], "first");
    assert_string_equal(arguments[1], "second");
    assert_null(arguments[2]);
}

static void a_program_keeps_its_own_options(void **state)
{
    (void)state;
    struct values values;
    char *arguments[64];
    int count;
    assert_int_equal(parse(&values, true, "test -q prog -v --number x", arguments, &count),
                     OPTIONS_GO);
    assert_true(values.quiet && !values.verbose);
    assert_int_equal(count, 4);
    assert_int_equal(parse(&values, true, "test -o B -- -v --", arguments, &count), OPTIONS_GO);
    assert_string_equal(values.output, "B");
    assert_int_equal(count, 2);
    assert_string_equal(arguments[0], "-v");
    assert_string_equal(arguments[1], "--");
}

static void the_table_is_printed_when_nothing_else_is_asked(void **state)
{
    (void)state;
    struct values values;
    char *arguments[64];
    int count;
    assert_int_equal(parse(&values, false, "test --option-table=man", arguments, &count), 42);
    assert_int_equal(parse(&values, true, "test -- --option-table=man", arguments, &count),
                     OPTIONS_GO);
    assert_int_equal(parse(&values, false, "test -q --option-table=man", arguments, &count),
                     STATUS_USAGE);
}

static void wrong_use_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"test --nothing",
                                        "test -x",
                                        "test --number",
                                        "test --number -1",
                                        "test --number 1x",
                                        "test -n",
                                        "test --timeout inf",
                                        "test --timeout nan",
                                        "test --timeout -3",
                                        "test --stacks some",
                                        "test --stacks nc",
                                        "test --quiet=yes",
                                        "test --number 99999999999999999999"};
    struct values values;
    char *arguments[64];
    int count;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(parse(&values, false, wrong[i], arguments, &count), STATUS_USAGE);
}

static void the_nearest_name_is_found(void **state)
{
    (void)state;
    static const char *const names[] = {"report", "run", "collect", "explain", NULL};
    assert_string_equal(options_nearest("reprot", names), "report");
    assert_string_equal(options_nearest("rn", names), "run");
    assert_string_equal(options_nearest("coll", names), "collect");
    assert_null(options_nearest("zzz", names));
    assert_null(
        options_nearest("a-very-long-name-that-is-like-nothing-else-in-this-program", names));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_come_in_every_usual_form),
        cmocka_unit_test(a_program_keeps_its_own_options),
        cmocka_unit_test(the_table_is_printed_when_nothing_else_is_asked),
        cmocka_unit_test(wrong_use_is_refused),
        cmocka_unit_test(the_nearest_name_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
