/* A rank's own time compared with that of its peers: none at all is a time, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyzer/engine.h"
#include "analyzer/model/model.h"
#include "analyzer/model/table.h"
#include "analyzer/speed/ranks.h"
#include "analyzer/speed/slowdown.h"

enum { MEMBERS = 3, ITERATIONS = 8 };

/* Seconds of each iteration that a rank does not wait. Powers of two, so that sums are exact. */
static const float own_s[MEMBERS] = {0, 0.25F, 0.75F}, length_s = 1;

static void no_own_time_is_a_time(void **state)
{
    static struct member member[MEMBERS];
    struct member *members[MEMBERS];
    struct comm comm = {.id = 1, .nranks = MEMBERS, .member = members, .members = MEMBERS};
    struct speed_comm speed_comm = {.id = 1, .comm = &comm, .collectives = ITERATIONS};
    struct analyzer *analyzer = analyzer_new(NULL);
    struct speed *speed = speed_get(analyzer);
    (void)state;
    assert_non_null(speed);
    for (int i = 0; i < MEMBERS; i++) {
        const struct process_info info = {.pid = 1000 + i, .rank = i, .world_size = MEMBERS};
        assert_int_equal(analyzer_add_process(analyzer, i, &info), 0);
        member[i] = (struct member){.comm = &comm, .rank = i, .process = analyzer->process[i]};
        members[i] = &member[i];
        struct speed_rank *rank = speed_rank_get(analyzer, analyzer->process[i], -1);
        assert_non_null(rank);
        rank->member = &member[i];
        rank->iterations = ITERATIONS;
        rank->iteration = calloc(ITERATIONS, sizeof *rank->iteration);
        assert_non_null(rank->iteration);
        for (uint64_t n = 0; n < ITERATIONS; n++)
            rank->iteration[n] = (struct speed_iteration){
                .number = n + 1, .length = length_s, .share[SHARE_WAIT] = length_s - own_s[i]};
    }
    speed->rank[2]->iteration[ITERATIONS - 1].number = 0; /* not known */
    struct speed_comm *added = &speed_comm;
    TABLE_ADD(speed->comms, id, added);
    struct judged judged = {
        .analyzer = analyzer, .speed = speed, .end = ITERATIONS, .length = length_s};
    assert_int_equal(judge_peers(&judged), 0);
    for (uint32_t rank = 0; rank < MEMBERS; rank++)
        for (int n = 0; n < ITERATIONS - 1; n++) {
            double expected = own_s[rank] - own_s[1]; /* the median member's */
            assert_true(judged_excess(&judged, rank)[n] == expected);
        }
    assert_true(judged_excess(&judged, 2)[ITERATIONS - 1] == 0);
    assert_true(judged.waited[2] > 0);
    HASH_DELETE(hh, speed->comms, added);
    free(judged.excess);
    free(judged.waited);
    free(judged.behind);
    free(judged.among);
    free(judged.pipeline);
    free(judged.pipeline_of);
    free(judged.idles);
    analyzer_free(analyzer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_own_time_is_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
