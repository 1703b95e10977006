/* Findings about slow ranks: of each rank one, which is brought up to date, however many there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/engine.h"
#include "analyzer/speed/slow_finding.h"

enum { SLOW_RANKS = 100 };

struct heard {
    int open, resolved;        /* notices */
    bool seen[SLOW_RANKS + 3]; /* two come back */
    int different;
};

static void hear(void *context, const struct finding *finding)
{
    struct heard *heard = context;
    assert_in_range(finding->id, 1, SLOW_RANKS + 2);
    heard->different += !heard->seen[finding->id];
    heard->seen[finding->id] = true;
    heard->open += finding->state == FINDING_OPEN;
    heard->resolved += finding->state == FINDING_RESOLVED;
}

/* What is slow of a rank, seen in the iterations from `first` to the last judged. */
static void report_rank(struct analyzer *analyzer, const struct speed_rank *rank, uint64_t first)
{
    const struct slowdown slowdown = {.kind = SLOW_DEVICE,
                                      .rank = &rank,
                                      .ranks = 1,
                                      .first = first,
                                      .last = analyzer->slot.speed->judged};
    slowdown_report(analyzer, &check_slow_device, &slowdown, DID_SLOW_DEVICE, HEADLINE_SLOW_DEVICE,
                    ADVICE_SLOW_DEVICE, NULL);
}

static void each_slow_rank_has_its_finding(void **state)
{
    static struct speed_rank rank[SLOW_RANKS];
    static struct member member[SLOW_RANKS];
    static struct heard heard;
    (void)state;
    const struct analyzer_options options = {.on_finding = hear, .context = &heard};
    struct analyzer *analyzer = analyzer_new(&options);
    struct speed speed = {.judged = 30}, *before = analyzer->slot.speed;
    analyzer->slot.speed = &speed;
    for (int i = 0; i < SLOW_RANKS; i++) {
        const struct process_info info = {.pid = 1000 + i, .rank = i, .world_size = SLOW_RANKS};
        assert_int_equal(analyzer_add_process(analyzer, i, &info), 0);
        member[i] = (struct member){.process = analyzer->process[i], .rank = i};
        rank[i] = (struct speed_rank){
            .key.process = analyzer->process[i], .index = (uint32_t)i, .member = &member[i]};
        report_rank(analyzer, &rank[i], 0);
    }
    assert_int_equal(heard.different, SLOW_RANKS);
    for (speed.judged = 60; speed.judged <= 90; speed.judged += 30)
        for (int i = 0; i < SLOW_RANKS; i++)
            report_rank(analyzer, &rank[i], speed.judged - 30); /* hear() sees no other id */
    assert_int_equal(heard.resolved, 0);
    speed.judged = 120; /* nothing of the first half is slow any more */
    for (int i = SLOW_RANKS / 2; i < SLOW_RANKS; i++)
        report_rank(analyzer, &rank[i], 90);
    slowdown_withdraw(analyzer, &check_slow_device, &(struct slowdown){.first = 0});
    assert_int_equal(heard.resolved, 0); /* it was seen in more iterations than these */
    speed.judged = 150;
    for (int i = SLOW_RANKS / 2; i < SLOW_RANKS; i++)
        report_rank(analyzer, &rank[i], 90);
    slowdown_withdraw(analyzer, &check_slow_device, &(struct slowdown){.first = 0});
    assert_int_equal(heard.resolved, SLOW_RANKS / 2);
    int open = heard.open;
    speed.judged = 180;
    report_rank(analyzer, &rank[0], 150); /* withdrawn: so few iterations do not bring it back */
    assert_int_equal(heard.open, open);
    report_rank(analyzer, &rank[0], 20);
    assert_int_equal(heard.open, open + 1);
    speed.is_over = true;
    report_rank(analyzer, &rank[1], 150);
    assert_int_equal(heard.open, open + 2);
    analyzer->slot.speed = before;
    analyzer_free(analyzer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_slow_rank_has_its_finding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
