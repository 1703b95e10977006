/* The words of findings: the language of templates, and that each row of headlines.def, advice.def
 * and acts.def is written in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/finding/headline.h"
#include "lib/finding/template.h"

/* --- the language, with fields of the test's own --- */

struct example {
    int ranks; /* how many */
    const char *name, *none;
    int flag;
};

static void add_some_ranks(struct words *words)
{
    words->is_one = ((const struct example *)words->from)->ranks == 1;
    text_add(words->text, words->is_one ? "rank 3" : "ranks 0-2");
}

static void add_some_name(struct words *words)
{
    text_add(words->text, "%s", ((const struct example *)words->from)->name);
}

static void add_nothing(struct words *words)
{
    (void)words;
}

static void add_the_number(struct words *words)
{
    text_add(words->text, "%d", words->number);
}

static void add_the_flag(struct words *words)
{
    text_add(words->text, "%d", ((const struct example *)words->from)->flag);
}

static const struct template_field example_fields[] = {
    {"ranks", add_some_ranks, 1},
    {"name", add_some_name, 1},
    {"none", add_nothing, 1},
    {"side", add_the_number, -4},
    {"place", add_the_number, 3},
    {"flag", add_the_flag, 1},
    {NULL, NULL, 0},
};

static void assert_words(const struct example *from, int sides, const char *template,
                         const char *expected)
{
    struct text text = {0};
    struct words words = {.text = &text, .fields = example_fields, .from = from, .sides = sides};
    template_add(&words, template);
    char *made = text_take(&text);
    assert_string_equal(made, expected);
    free(made);
}

static void templates_agree_with_numbers(void **state)
{
    (void)state;
    const struct example one = {.ranks = 1, .name = "x"}, several = {.ranks = 3, .name = "x"};
    static const struct {
        const char *template, *of_one, *of_several;
    } cases[] = {
        {"{ranks} {waits|wait}", "rank 3 waits", "ranks 0-2 wait"},
        {"{ranks} {has|have} {its|their} operation{|s}", "rank 3 has its operation",
         "ranks 0-2 have their operations"},
        {"x {=ranks}{is|are}", "x is", "x are"},
        {"{ranks} {{name} is|two {name}s are}", "rank 3 x is", "ranks 0-2 two xs are"},
        {"{waits|wait}[ {ranks} {none}] {waits|wait}", "wait wait", "wait wait"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_words(&one, 0, cases[i].template, cases[i].of_one);
        assert_words(&several, 0, cases[i].template, cases[i].of_several);
    }
}

static void templates_leave_out_what_is_empty(void **state)
{
    (void)state;
    const struct example from = {.ranks = 1, .name = "x", .flag = 0};
    static const struct {
        const char *template, *words;
    } cases[] = {
        {"a[ in {name}]", "a in x"},
        {"a[ in {none}]", "a"},
        {"a[ in {name}[ of {none}]]", "a in x"},
        {"a[ in {none}[ of {name}]]", "a"},
        {"{flag?yes|no}", "no"},
        {"{name?yes|no}", "yes"},
        {"{none?yes|no}", "no"},
        {"{none?yes}", ""},
        {"{name?of {name}|of {none}}", "of x"},
        {"{place:2} {place}", "2 0"},
        {"{place:3} {unknown} {unknown:1}", "{place:3} {unknown} {unknown:1}"},
        {"no field", "no field"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_words(&from, 0, cases[i].template, cases[i].words);
}

static void templates_repeat_for_each_side(void **state)
{
    (void)state;
    const struct example from = {.ranks = 1, .name = "x"};
    assert_words(&from, 3, "<{side}{name}|, | and >.", "0x, 1x and 2x.");
    assert_words(&from, 3, "<{side}|; >", "0; 1; 2");
    assert_words(&from, 2, "<{side}|, | and >", "0 and 1");
    assert_words(&from, 1, "<{side}|, | and >", "0");
    assert_words(&from, 3, "{side}<1:{side}|, | and >", "0, 1 and 2");
    assert_words(&from, 0, "a<{side}|, >", "a");
    assert_words(&from, 2, "<{side}[ {none}] {place}|, >", "0 0, 1 0");
}

/* --- the rows --- */

/* A finding that has everything that a row can name. */
struct full {
    struct finding finding;
    struct rankset ranks, more;
    struct act act;
    struct values values;
};

static void fill(struct full *full, int sides, int ranks)
{
    *full = (struct full){.act = {.did = DID_EXITED, .value = 1}};
    full->finding = (struct finding){.sides = sides, .number = 7, .has_number = true};
    for (int i = 0; i < sides; i++) {
        struct finding_side *side = &full->finding.side[i];
        *side = (struct finding_side){
            .call = strdup("called it"), .where = strdup("in x"), .phase = strdup("loop")};
        for (int rank = 0; rank < ranks; rank++)
            assert_int_equal(rankset_add(&side->ranks, 4 * i + rank), 0);
    }
    for (int rank = 0; rank < ranks; rank++)
        assert_int_equal(rankset_add(&full->more, rank), 0);
    full->values = (struct values){
        .comm = "comm 5ae7 (4 ranks)",
        .label = "comm 5ae7",
        .set = {&full->more, &full->more},
        .call = {call_of_api(API_ncclAllReduce), call_of_api(API_ncclBroadcast)},
        .act = {&full->act, &full->act},
        .wait = {.kind = AWAITED_INIT, .title = "comm 5ae7"},
    };
    for (int i = 0; i < NAMES_MAX; i++)
        full->values.name[i] = "a name";
    for (int i = 0; i < VALUES_MAX; i++) {
        full->values.value[i] = ranks;
        full->values.amount[i] = 1.5;
    }
    for (int i = 0; i < FINDING_SIDES_MAX; i++) {
        full->values.each[i] = ranks;
        full->values.said[i] = "a name";
        full->values.whom[i] = full->more;
    }
    for (int i = 0; i < FLAGS_MAX; i++)
        full->values.flag[i] = ranks == 1;
}

static void clear(struct full *full)
{
    finding_free(&full->finding);
    rankset_free(&full->more);
}

static void assert_plain(const char *row, const char *words)
{
    if (strpbrk(words, "{}[]<>|") || strstr(words, "  ") || strstr(words, " ,") ||
        strstr(words, "?"))
        fail_msg("%s: \"%s\"", row, words);
}

#define HEADLINE(name, words) "HEADLINE(" #name,
static const char *const headline_rows[] = {
#include "lib/finding/headlines.def"
};
#undef HEADLINE
#define ADVICE(name, words) "ADVICE(" #name,
static const char *const advice_rows[] = {
#include "lib/finding/advice.def"
};
#undef ADVICE

static void say_all(struct full *full, const struct values *values)
{
    for (int i = 0; i < HEADLINE_COUNT; i++) {
        assert_int_equal(finding_say(&full->finding, (enum headline)i, ADVICE_NONE, values), 0);
        assert_plain(headline_rows[i], full->finding.what);
    }
    for (int i = 0; i < ADVICE_COUNT; i++) {
        assert_int_equal(finding_say(&full->finding, 0, (enum advice)i, values), 0);
        assert_plain(advice_rows[i], full->finding.todo);
    }
}

static void every_row_is_understood(void **state)
{
    (void)state;
    for (int sides = 2; sides <= 3; sides++)
        for (int ranks = 1; ranks <= 3; ranks++) {
            struct full full;
            fill(&full, sides, ranks);
            say_all(&full, &full.values);
            clear(&full);
        }
}

static void every_act_is_understood(void **state)
{
    (void)state;
    const struct awaited wait = {.kind = AWAITED_INIT, .title = "comm 5ae7"};
    for (int did = 0; did < DID_COUNT; did++) {
        struct act act = {.did = (enum did)did,
                          .call = call_of_api(API_ncclAllReduce),
                          .value = 1,
                          .rank = 1,
                          .number = 1,
                          .wait = wait,
                          .behind = wait,
                          .name = "a name",
                          .phase = "a phase"};
        char *words = act_words(&act);
        assert_plain(did_key(act.did), words);
        free(words);
    }
}

static void advice_goes_on(void **state)
{
    (void)state;
    struct full full;
    fill(&full, 1, 1);
    assert_int_equal(finding_say(&full.finding, HEADLINE_SHARED_GPU, ADVICE_NONE, &full.values), 0);
    assert_string_equal(full.finding.todo, "");
    assert_int_equal(finding_advise(&full.finding, ADVICE_GPU_LISTED_TWICE, NULL), 0);
    assert_int_equal(finding_advise(&full.finding, ADVICE_GPU_LISTED_TWICE, NULL), 0);
    assert_string_equal(full.finding.todo,
                        "List each device once; NULL stands for the first ndev devices. "
                        "List each device once; NULL stands for the first ndev devices.");
    clear(&full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_agree_with_numbers),
        cmocka_unit_test(templates_leave_out_what_is_empty),
        cmocka_unit_test(templates_repeat_for_each_side),
        cmocka_unit_test(every_row_is_understood),
        cmocka_unit_test(every_act_is_understood),
        cmocka_unit_test(advice_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
