/* Who waits for whom, as a tree of lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cycle_job.h"

struct tree {
    char text[2048];
    int lines, cycles;
};

static void draw_line(void *context, const struct wait_view *wait)
{
    struct tree *tree = context;
    size_t used = strlen(tree->text);
    snprintf(tree->text + used, sizeof tree->text - used, "%*s%s%s\n", 2 * wait->depth, "",
             wait->text, wait->again ? " (again)" : "");
    tree->lines++;
    tree->cycles += wait->in_cycle;
}

static void draw_tree(struct job *job, int ranks, struct tree *tree)
{
    struct analyzer *analyzer = analyzer_new(NULL);
    for (int i = 0; i < ranks; i++) {
        struct process_info info = {
            .pid = 1000 + i, .rank = i, .world_size = ranks, .host = "a", .boot_id = "b"};
        assert_int_equal(analyzer_add_process(analyzer, i, &info), 0);
    }
    struct record record;
    int rank;
    for (size_t i = 0; job_event(job, i, &rank, &record); i++)
        assert_int_equal(analyzer_feed(analyzer, rank < 0 ? 0 : rank, &record), 0);
    assert_int_equal(analyzer_visit_waits(analyzer, draw_line, tree), 0);
    analyzer_free(analyzer);
}

static void waits_as_a_tree(void **state)
{
    (void)state;
    struct job *job = cycle_job_new(3);
    for (int rank = 0; rank < 3; rank++) {
        cycle_job_issue(job, rank, rank == 2 ? SECOND : FIRST, rank == 2 ? FIRST : SECOND,
                        rank ? ON_ONE_STREAM : BY_HOST, true);
        if (rank)
            wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
    }
    ticks(job, 1000);
    struct tree tree = {0};
    draw_tree(job, 3, &tree);
    assert_string_equal(
        tree.text,
        "ranks 0-1 wait in ncclAllReduce(count=100, float32, sum) #0 of comm aaaa (3 ranks)\n"
        "  rank 2 has called it, behind another operation on its stream\n"
        "    rank 2 waits in ncclAllReduce(count=200, float32, sum) #0 of comm bbbb (3 ranks)\n"
        "      rank 0 has not called it: in cudaStreamSynchronize\n"
        "        ranks 0-1 wait in ncclAllReduce(count=100, float32, sum) #0 of comm aaaa (3 "
        "ranks) (again)\n"
        "      rank 1 has called it, behind another operation on its stream\n"
        "        ranks 0-1 wait in ncclAllReduce(count=100, float32, sum) #0 of comm aaaa (3 "
        "ranks) "
        "(again)\n");
    assert_int_equal(tree.lines, 7);
    assert_int_equal(tree.cycles, 4);
    job_free(job);
}

/* Ranks that are missing in the same and wait for the same are one line, whatever their number. */
static void missing_ranks_as_one_line(void **state)
{
    (void)state;
    struct job *job = cycle_job_new(RANKS);
    for (int rank = 0; rank < RANKS; rank++) {
        ALL_REDUCE(job, rank, rank == 3 ? SECOND : FIRST, 100, .stream = ONE);
        wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
    }
    ticks(job, 1000);
    struct tree tree = {0};
    draw_tree(job, RANKS, &tree);
    assert_has(tree.text, "rank 3 waits in ncclAllReduce");
    assert_has(tree.text, "  ranks 0-2 have not called it: in cudaStreamSynchronize\n");
    assert_has(tree.text, "  rank 3 has not called it: in cudaStreamSynchronize\n");
    assert_int_equal(tree.lines, 5);
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_as_a_tree),
        cmocka_unit_test(missing_ranks_as_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
