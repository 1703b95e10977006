/* Mismatches: DC101 to DC107, DC109 and DC405; each faulty job has a correct twin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum { RANKS = 4 };

/* Six good steps with rank `odd` making `bad` instead of `good` as operation 3. */
static struct job *one_odd_call(struct call good, struct call bad, int odd)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int step = 0; step < 6; step++)
        for (int rank = 0; rank < RANKS; rank++) {
            if (step == 3)
                issue(job, rank, rank == odd ? bad : good);
            else
                ALL_REDUCE(job, rank, WORLD, 100 + (uint64_t)step);
        }
    return job;
}

static const struct {
    const char *code;
    struct call good, bad;
} field_cases[] = {
#define CALL(kind, ...)                                     \
    {                                                       \
        .api = API_nccl##kind, .comm = WORLD, ##__VA_ARGS__ \
    }
    {"DC101", CALL(AllReduce, .count = 8), CALL(AllGather, .count = 8)},
    {"DC101", CALL(AllReduce, .count = 8), CALL(Broadcast, .count = 9, .type = TYPE_INT8)},
    {"DC102", CALL(AllReduce, .count = 8), CALL(AllReduce, .count = 9)},
    {"DC102", CALL(AllGather, .count = 8), CALL(AllGather, .count = 9)},
    {"DC102", CALL(ReduceScatter, .count = 8), CALL(ReduceScatter, .count = 9)},
    {"DC102", CALL(AlltoAll, .count = 8), CALL(AlltoAll, .count = 9)},
    {"DC102", CALL(Gather, .count = 8), CALL(Gather, .count = 9)},
    {"DC102", CALL(Scatter, .count = 8), CALL(Scatter, .count = 9)},
    {"DC103", CALL(AllReduce, .count = 8), CALL(AllReduce, .count = 8, .type = TYPE_FLOAT16)},
    {"DC103", CALL(AllReduce, .count = 8), CALL(AllReduce, .count = 16, .type = TYPE_FLOAT16)},
    {"DC104", CALL(AllReduce, .count = 8), CALL(AllReduce, .count = 8, .redop = REDOP_AVG)},
    {"DC104", CALL(Reduce, .count = 8), CALL(Reduce, .count = 8, .redop = REDOP_MAX)},
    {"DC105", CALL(Broadcast, .count = 8, .root = 0), CALL(Broadcast, .count = 8, .root = 1)},
    {"DC105", CALL(Bcast, .count = 8, .root = 0), CALL(Broadcast, .count = 8, .root = 1)},
    {"DC105", CALL(Reduce, .count = 8, .root = 0), CALL(Reduce, .count = 8, .root = 2)},
    {"DC105", CALL(Gather, .count = 8, .root = 0), CALL(Gather, .count = 8, .root = 2)},
    {"DC105", CALL(Scatter, .count = 8, .root = 0), CALL(Scatter, .count = 8, .root = 2)},
    /* what may differ */
    {NULL, CALL(Bcast, .count = 8, .root = 1), CALL(Broadcast, .count = 8, .root = 1)},
    {NULL, CALL(AllGather, .count = 8), CALL(AllGather, .count = 8, .redop = REDOP_MAX)},
    {NULL, CALL(AllReduce, .count = 8, .root = 0), CALL(AllReduce, .count = 8, .root = 3)},
    {NULL, CALL(AllReduce, .count = 8, .stream = 1), CALL(AllReduce, .count = 8, .stream = 0x99)},
    {NULL, CALL(AllReduce, .count = 8, .sendbuff = 0x1000),
     CALL(AllReduce, .count = 8, .sendbuff = 0x2000)},
    {NULL, CALL(AllReduce, .count = 8), CALL(AllReduce, .count = 8, .scalar = 77)},
    {NULL, CALL(AllReduce, .count = 8, .redop = REDOP_PREMULSUM, .scalar = 1),
     CALL(AllReduce, .count = 8, .redop = REDOP_PREMULSUM, .scalar = 2)},
};

static void each_field_has_its_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof field_cases / sizeof *field_cases; i++)
        for (int odd = 0; odd < RANKS; odd++) {
            struct job *job = one_odd_call(field_cases[i].good, field_cases[i].bad, odd);
            struct verdict verdict;
            const struct found *found = expect_in(job, &verdict, field_cases[i].code);
            if (field_cases[i].code) {
                char odd_rank[2] = {(char)('0' + odd), 0};
                assert_int_equal(found->number, 3);
                assert_int_equal(found->sides, 2);
                assert_string_equal(found->ranks[1], odd_rank);
                assert_int_equal(found->certainty, CERTAIN);
                assert_int_equal(found->times, 1);
            }
            job_free(job);
        }
}

/* The fingerprint does not depend on which rank comes first, nor on the job. */
static void fingerprint_is_stable(void **state)
{
    (void)state;
    struct job *first = one_odd_call(field_cases[2].good, field_cases[2].bad, 1);
    struct job *second = one_odd_call(field_cases[2].good, field_cases[2].bad, 0);
    struct verdict a, b;
    assert_true(expect_in(first, &a, "DC102")->fingerprint ==
                expect_in(second, &b, "DC102")->fingerprint);
    struct job *other = one_odd_call(field_cases[3].good, field_cases[3].bad, 0);
    assert_true(a.found[0].fingerprint != expect_in(other, &b, "DC102")->fingerprint);
    job_free(first);
    job_free(second);
    job_free(other);
}

/* Rank 3 leaves out operation 2: it is said, and what follows is counted, not reported. */
static void skipped_call_is_recognised(void **state)
{
    (void)state;
    for (int doubled = 0; doubled < 2; doubled++) {
        struct job *job = job_new(RANKS);
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS; rank++)
            for (int step = 0; step < 12; step++) {
                if (rank == 3 && step == 2 && !doubled)
                    continue;
                ALL_REDUCE(job, rank, WORLD, 100 + (uint64_t)step);
                if (rank == 3 && step == 2 && doubled)
                    ALL_REDUCE(job, rank, WORLD, 100 + (uint64_t)step);
            }
        for (uint64_t seed = 0; seed < 8; seed++) {
            struct verdict verdict;
            job_analyze(job, seed, &verdict);
            assert_int_equal(verdict.count, 1);
            assert_string_equal(verdict.found[0].code, "DC102");
            assert_int_equal(verdict.found[0].number, 2 + doubled);
            if (!strstr(verdict.found[0].what,
                        doubled ? "rank 3 is one operation behind: its #4 is what the others call "
                                  "#3 (it seems to have made a call too many)"
                                : "rank 3 is one operation ahead: its #2 is what the others call "
                                  "#3 (it seems to have skipped a call)"))
                fail_msg("no shift in: %s", verdict.found[0].what);
            assert_true(verdict.found[0].times > 5);
        }
        job_free(job);
    }
}

/* Rank 3 makes one wrong call among equal ones: no call was skipped or made twice. */
static void wrong_call_is_no_shift(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++)
        for (int step = 0; step < 12; step++)
            ALL_REDUCE(job, rank, WORLD, rank == 3 && step == 2 ? 101 : 100);
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct verdict verdict;
        job_analyze(job, seed, &verdict);
        assert_int_equal(verdict.count, 1);
        assert_string_equal(verdict.found[0].code, "DC102");
        assert_int_equal(verdict.found[0].number, 2);
        assert_null(strstr(verdict.found[0].what, "behind"));
        assert_null(strstr(verdict.found[0].what, "ahead"));
    }
    job_free(job);
}

/* Rank 1 calls what `order` says in one group; the others 0, 1, 2. */
static struct job *grouped(const char *order, bool single)
{
    struct job *job = job_new(3);
    job_init(job, WORLD, 0, 2);
    for (int rank = 0; rank < 3; rank++) {
        const char *calls = rank == 1 ? order : "012";
        ALL_REDUCE(job, rank, WORLD, 7);
        if (rank != 1 || !single)
            group_start(job, rank);
        for (; *calls; calls++) {
            if (*calls == '|') {
                group_end(job, rank);
                group_start(job, rank);
                continue;
            }
            ALL_REDUCE(job, rank, WORLD, 100 + (uint64_t)(*calls - '0'));
        }
        if (rank != 1 || !single)
            group_end(job, rank);
    }
    return job;
}

static void groups_must_hold_the_same_calls(void **state)
{
    (void)state;
    static const struct {
        const char *order, *code;
        bool single;
    } cases[] = {
        {"012", NULL, false},    {"012", NULL, true},      {"102", "DC106", false},
        {"021", "DC106", false}, {"01|2", "DC106", false}, {"02", "DC106", false},
        {"01", "DC106", false},  {"015", "DC102", false},  {"102", "DC102", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            struct job *job = grouped(cases[i].order, cases[i].single);
            struct verdict verdict;
            expect_in(job, &verdict, cases[i].code);
            if (cases[i].code) {
                assert_string_equal(verdict.found[0].ranks[0], "0,2");
                assert_string_equal(verdict.found[0].ranks[1], "1");
            }
            job_analyze(job, seed, &verdict);
            assert_int_equal(verdict.count, cases[i].code != NULL);
            job_free(job);
        }
}

static void pairs_must_agree(void **state)
{
    (void)state;
    for (int fault = 0; fault < 3; fault++) {
        struct job *job = job_new(2);
        job_init(job, WORLD, 0, 1);
        for (int i = 0; i < 4; i++) {
            struct call send = {
                .api = API_ncclSend, .comm = WORLD, .count = 10 + (uint64_t)i, .root = 1};
            struct call recv = {
                .api = API_ncclRecv, .comm = WORLD, .count = 10 + (uint64_t)i, .root = 0};
            if (i == 2 && fault == 1)
                recv.count++;
            if (i == 2 && fault == 2)
                recv.type = TYPE_INT32;
            issue(job, 0, send);
            issue(job, 1, recv);
        }
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, fault ? "DC107" : NULL);
        if (fault) {
            assert_int_equal(found->number, 2);
            assert_string_equal(found->ranks[0], "0");
            assert_string_equal(found->ranks[1], "1");
        }
        for (uint64_t seed = 1; seed < 9; seed++) {
            struct verdict other;
            job_analyze(job, seed, &other);
            assert_int_equal(other.count, fault != 0);
        }
        job_free(job);
    }
}

enum setup_fault { GOOD, WORLD_SIZE, DUPLICATE, OUT_OF_RANGE, SAME_GPU };

static struct job *set_up(enum setup_fault fault)
{
    struct job *job = job_new(3);
    for (int rank = 0; rank < 3; rank++) {
        bool odd = rank == 2;
        init_enter(job, rank, WORLD, odd && fault == WORLD_SIZE ? 4 : 3,
                   odd && fault == DUPLICATE      ? 1
                   : odd && fault == OUT_OF_RANGE ? 5
                                                  : rank,
                   odd && fault == SAME_GPU ? 1001 : 1000 + (uint64_t)rank);
    }
    for (int rank = 0; rank < 3; rank++)
        if (fault == GOOD)
            init_leave(job, rank, WORLD, 3, rank, 0);
        else if (fault == SAME_GPU)
            init_leave(job, rank, WORLD, 3, rank, 5);
    if (fault != GOOD)
        for (int rank = 0; rank < 3; rank++)
            end(job, rank, END_EXIT, 1, false);
    ticks(job, 12000);
    return job;
}

static void set_up_faults(void **state)
{
    (void)state;
    static const char *const codes[] = {NULL, "DC109", "DC109", "DC109", "DC405"};
    for (enum setup_fault fault = GOOD; fault <= SAME_GPU; fault++) {
        struct job *job = set_up(fault);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, codes[fault]);
        if (fault == WORLD_SIZE) {
            assert_string_equal(found->ranks[0], "0-1");
            assert_string_equal(found->ranks[1], "2");
        }
        if (fault == SAME_GPU)
            assert_string_equal(found->ranks[0], "1-2");
        for (uint64_t seed = 1; seed < 9; seed++) {
            struct verdict other;
            job_analyze(job, seed, &other);
            assert_int_equal(other.count, codes[fault] != NULL);
        }
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_field_has_its_code),
        cmocka_unit_test(fingerprint_is_stable),
        cmocka_unit_test(skipped_call_is_recognised),
        cmocka_unit_test(wrong_call_is_no_shift),
        cmocka_unit_test(groups_must_hold_the_same_calls),
        cmocka_unit_test(pairs_must_agree),
        cmocka_unit_test(set_up_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
