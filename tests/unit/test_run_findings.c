/* What `ddpcheck run` prints of findings while the job runs: each once, also one that is possible at
 * first and certain later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cmd/run.h"

static const char possible[] = "7 error possible DC201 train.c:176 | ranks 0-2 wait";
static const char certain[] = "7 error certain DC201 train.c:176 | ranks 0-2 wait";

/* The command that prints the report is not what is tested here. */
void run_print_report(const struct watched_run *run, const char *before)
{
    (void)run;
    fprintf(stderr, "%sreport\n", before);
}

/* What the lines make it print; the caller frees it. *aborts: whether the last one ends the job. */
static char *printed(struct watched_run *run, const char *const *lines, int count, bool *aborts)
{
    char *text = calloc(1, 4096);
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    assert_true(text && file && kept >= 0);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    for (int i = 0; i < count; i++)
        *aborts = run_print_finding(run, lines[i]);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    assert_true(fread(text, 1, 4095, file) > 0);
    fclose(file);
    rankset_free(&run->possible);
    return text;
}

static void what_was_possible_and_is_certain_is_one_line(void **state)
{
    struct watched_run run = {.options = {.on_finding = ON_FINDING_ABORT}};
    const char *const lines[] = {possible, certain};
    bool aborts = false;
    char *text = printed(&run, lines, 2, &aborts);
    (void)state;
    assert_string_equal(text, "ddpcheck: train.c:176: possible error DC201: ranks 0-2 wait\n"
                              "          see: report\n"
                              "ddpcheck: DC201 is certain now: ranks 0-2 wait\n");
    assert_true(aborts);
    assert_int_equal(run.found[SEVERITY_ERROR], 1);
    free(text);
}

static void what_is_certain_at_once_has_its_line(void **state)
{
    struct watched_run run = {.options = {.on_finding = ON_FINDING_WARN}};
    const char *const lines[] = {certain};
    bool aborts = true;
    char *text = printed(&run, lines, 1, &aborts);
    (void)state;
    assert_string_equal(text, "ddpcheck: train.c:176: error DC201: ranks 0-2 wait\n"
                              "          see: report\n");
    assert_false(aborts);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_possible_and_is_certain_is_one_line),
        cmocka_unit_test(what_is_certain_at_once_has_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
