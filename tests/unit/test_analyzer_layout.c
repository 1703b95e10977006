/* DC110: the same whole in other pieces or another order; and mismatches that are something else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loop_stream.h"

enum { ODD_RANK = 2, PIECES_MAX = 8, ROUNDS = 4 };

struct plan {
    const char *code, *call[2];
    int usual[PIECES_MAX], odd[PIECES_MAX]; /* counts, 0 ends */
    int ranges;                             /* 0: none; 1: iterations */
    int good_rounds;                        /* before the odd rank differs */
    int bad_rounds;                         /* rounds in which it differs then */
};

static void round_of(struct job *job, int rank, const int *counts, int iteration, bool ranges)
{
    if (ranges)
        begin(job, rank, iteration);
    for (int i = 0; i < PIECES_MAX && counts[i]; i++)
        ALL_REDUCE(job, rank, WORLD, (uint64_t)counts[i]);
    if (ranges)
        end_of_range(job, rank);
}

static const struct plan plans[] = {
    {"DC110",
     {"ncclAllReduce of 600 float32", "ncclAllReduce of 200 + 400 float32"},
     {600},
     {200, 400},
     0,
     0,
     ROUNDS},
    {"DC110",
     {"ncclAllReduce of 100 + 250 + 300 float32", "ncclAllReduce of 300 + 250 + 100 float32"},
     {100, 250, 300},
     {300, 250, 100},
     0,
     0,
     1},
    {"DC110",
     {"ncclAllReduce of 100 + 200 + 300 float32", "ncclAllReduce of 250 + 250 + 100 float32"},
     {100, 200, 300},
     {250, 250, 100},
     0,
     0,
     1},
    {"DC110",
     {"ncclAllReduce of 100 + 200 + 300 float32", "ncclAllReduce of 600 float32"},
     {50, 100, 200, 300},
     {50, 600},
     0,
     2,
     2},
    {"DC110",
     {"ncclAllReduce of 100 + 200 float32", "ncclAllReduce of 200 + 100 float32"},
     {100, 200},
     {200, 100},
     1,
     3,
     1},
    {"DC110",
     {"ncclAllReduce of 100 + 200 + 300 float32", "ncclAllReduce of 200 + 300 + 100 float32"},
     {100, 200, 300},
     {200, 300, 100},
     1,
     0,
     ROUNDS},
    /* two calls swapped, and no range that says that they are of one iteration */
    {"DC102", {0}, {100, 200}, {200, 100}, 0, 1, 1},
    /* a count that is wrong once: the sums never meet */
    {"DC102", {0}, {100, 200, 300}, {100, 201, 300}, 0, 1, 1},
    /* a count that is wrong in each round: the sums meet once another call of it has made up */
    {"DC102", {0}, {100, 100, 100}, {50, 100, 100}, 0, 1, ROUNDS},
    {"DC102", {0}, {100, 100, 200}, {100, 50, 200}, 0, 0, ROUNDS},
    /* a call left out: the sequence is shifted, and after a whole round its sums are equal */
    {"DC102", {0}, {100, 200, 300}, {100, 300}, 0, 2, 1},
    {"DC102", {0}, {100, 200, 300, 400, 500}, {100, 500}, 0, 2, 1},
    {"DC102", {0}, {1024, 1024, 2048}, {2048}, 0, 2, 1},
    /* a call too many */
    {"DC102", {0}, {100, 200, 300}, {100, 200, 200, 300}, 0, 2, 1},
    {NULL, {0}, {100, 200, 300}, {100, 200, 300}, 1, 2, 2},
};

static void wholes_and_pieces(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
        const struct plan *plan = &plans[k];
        struct job *job = loop_job_new();
        for (int i = 0; i < plan->good_rounds + plan->bad_rounds + ROUNDS; i++)
            for (int rank = 0; rank < RANKS; rank++) {
                bool odd = rank == ODD_RANK && i >= plan->good_rounds &&
                           i < plan->good_rounds + plan->bad_rounds;
                round_of(job, rank, odd ? plan->odd : plan->usual, i, plan->ranges);
            }
        struct verdict verdict;
        bool strikes = plan->code && !strcmp(plan->code, "DC110");
        for (uint64_t turn = 0; turn < 8; turn++) {
            uint64_t seed = turn == 6 ? BY_RANK : turn == 7 ? BY_RANK_BACKWARDS : turn;
            job_analyze(job, seed, &verdict);
            if (verdict.count != (plan->code != NULL) ||
                (plan->code && strcmp(verdict.found[0].code, plan->code)))
                fail_msg("plan %d, mixed by %d: %d findings, first %s: %s", (int)k, (int)seed,
                         verdict.count, verdict.found[0].code, verdict.found[0].what);
            if (!strikes)
                continue;
            assert_int_equal(verdict.found[0].certainty, CERTAIN);
            assert_string_equal(verdict.found[0].ranks[0], "0-1,3");
            assert_string_equal(verdict.found[0].ranks[1], "2");
            assert_string_equal(verdict.found[0].call[0], plan->call[0]);
            assert_string_equal(verdict.found[0].call[1], plan->call[1]);
        }
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wholes_and_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
