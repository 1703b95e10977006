/* What the analyzer makes of where processes stand that nobody watched (notice_position). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/analyzer.h"

enum { WORKS = POSITION_WORKS, MOVES = POSITION_MOVES };

struct stand {
    enum place_kind place;
    uint64_t text, stack;
    uint32_t flags; /* POSITION_* */
};

static void take_first(void *context, const struct finding *finding)
{
    enum code *code = context;
    if (finding->code < DC901 && !*code) {
        *code = finding->code;
        assert_int_equal(finding->certainty, POSSIBLE);
        assert_true(finding->sides > 0 && rankset_count(&finding->side[0].ranks) > 0);
    }
}

static enum code judge(const struct stand *stand, int ranks, int lasts_s)
{
    struct analyzer *analyzer = analyzer_new(NULL);
    enum code code = CODE_NONE;
    assert_non_null(analyzer);
    for (int i = 0; i < ranks; i++) {
        struct process_info info = {.rank = i,
                                    .local_rank = i,
                                    .world_size = ranks,
                                    .restart = -1,
                                    .pid = 100 + i,
                                    .lacks = 1};
        assert_int_equal(analyzer_add_process(analyzer, i, &info), 0);
        struct record record = {.api = API_notice_position,
                                .time_ns = 1,
                                .serial = 1,
                                .device = RECORD_NO_DEVICE,
                                .stack = stand[i].stack};
        record.position.place = stand[i].place;
        record.position.text = stand[i].text;
        record.position.flags = stand[i].flags;
        record.position.lasts_s = lasts_s;
        assert_int_equal(analyzer_feed(analyzer, i, &record), 0);
    }
    assert_int_equal(analyzer_finish(analyzer), 0);
    analyzer_visit_findings(analyzer, take_first, &code);
    analyzer_free(analyzer);
    return code;
}

static const struct case_of_positions {
    enum code code;
    int lasts_s;
    struct stand stand[4];
} cases[] = {
    {DC201, 3, {{PLACE_WAIT, 1, 1, 0}, {PLACE_WAIT, 1, 1, 0}, {PLACE_ELSEWHERE, 2, 2, 0}}},
    {DC201, 3, {{PLACE_WAIT, 1, 1, 0}, {PLACE_WAIT, 1, 2, 0}, {PLACE_WAIT, 1, 1, 0}}},
    {DC201, 3, {{PLACE_OPERATION, 1, 1, 0}, {PLACE_STOPPED, 0, 0, 0}, {PLACE_OPERATION, 1, 1, 0}}},
    {DC205, 3, {{PLACE_OPERATION, 1, 1, 0}, {PLACE_GONE, 0, 0, 0}, {PLACE_WAIT, 2, 2, 0}}},
    {DC209, 3, {{PLACE_SETUP, 1, 1, 0}, {PLACE_SETUP, 1, 1, 0}, {PLACE_ELSEWHERE, 2, 2, 0}}},
    {DC209, 3, {{PLACE_SETUP, 1, 1, 0}, {PLACE_SETUP, 1, 1, 0}, {PLACE_GONE, 0, 0, 0}}},
    {DC101,
     3,
     {{PLACE_OPERATION, 1, 1, 0}, {PLACE_OPERATION, 2, 2, 0}, {PLACE_OPERATION, 1, 1, 0}}},
    {DC211,
     3,
     {{PLACE_OPERATION, 1, 1, 0}, {PLACE_OPERATION, 1, 1, 0}, {PLACE_OPERATION, 1, 1, 0}}},
    /* a long kernel, a slow set-up, nobody who waits, a job that gets on */
    {CODE_NONE, 3, {{PLACE_WAIT, 1, 1, 0}, {PLACE_WAIT, 1, 1, 0}, {PLACE_WAIT, 1, 1, 0}}},
    {CODE_NONE, 3, {{PLACE_SETUP, 1, 1, 0}, {PLACE_SETUP, 1, 1, 0}, {PLACE_SETUP, 1, 1, 0}}},
    {CODE_NONE, 3, {{PLACE_ELSEWHERE, 1, 1, 0}, {PLACE_ELSEWHERE, 2, 2, 0}, {PLACE_GONE, 0, 0, 0}}},
    {CODE_NONE, 3, {{PLACE_WAIT, 1, 1, MOVES}, {PLACE_WAIT, 1, 1, 0}, {PLACE_ELSEWHERE, 2, 2, 0}}},
    /* who is awaited works: it is late, until that lasts as long as a hang */
    {DC210, 3, {{PLACE_WAIT, 1, 1, 0}, {PLACE_WAIT, 1, 1, 0}, {PLACE_ELSEWHERE, 2, 2, WORKS}}},
    {DC201, 10, {{PLACE_WAIT, 1, 1, 0}, {PLACE_WAIT, 1, 1, 0}, {PLACE_ELSEWHERE, 2, 2, WORKS}}},
    {DC210, 3, {{PLACE_SETUP, 1, 1, 0}, {PLACE_SETUP, 1, 1, 0}, {PLACE_ELSEWHERE, 2, 2, WORKS}}},
    {DC201, 3, {{PLACE_WAIT, 1, 1, 0}, {PLACE_ELSEWHERE, 3, 3, 0}, {PLACE_ELSEWHERE, 2, 2, WORKS}}},
    {DC211, 10, {{PLACE_WAIT, 1, 1, 0}, {PLACE_WAIT, 1, 1, 0}, {PLACE_WAIT, 1, 1, 0}}},
};

static void test_positions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum code code = judge(cases[i].stand, 3, cases[i].lasts_s);
        if (code != cases[i].code)
            fail_msg("case %zu: %s, not %s", i, code_name(code), code_name(cases[i].code));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_positions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
