/* Communicators that their ranks set up differently (DC109, DC405), counts of 0 on some ranks
 * (DC102), and which rank is ahead or behind (DC101). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD  UINT64_C(0x1111000000000001)
#define SECOND UINT64_C(0x2222000000000002)

enum { RANKS = 4, INVALID_USAGE = 5 };

static struct job *world(void)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    return job;
}

static void unique_id_used_again(void **state)
{
    (void)state;
    struct job *job = world();
    for (int rank = 0; rank < RANKS; rank++)
        init_enter(job, rank, WORLD, RANKS, rank, 100 + (uint64_t)rank);
    ticks(job, 500);
    const struct found *found = expect(job, "DC109");
    assert_string_equal(found->ranks[0], "0-3");
    assert_has(found->what, "an id is good for one communicator");
    job_free(job);
}

/* One rank in two processes, or twice in one, as two threads with the same number make it. */
static void rank_that_is_taken(void **state)
{
    (void)state;
    for (int same = 0; same < 2; same++) {
        struct job *job = job_new(2);
        init_enter(job, 0, WORLD, 2, 0, 100);
        job_thread(job, 0, 900);
        init_enter(job, same ? 0 : 1, WORLD, 2, 0, 101);
        const struct found *found = expect(job, "DC109");
        assert_has(found->what, "rank 0 of comm 1111 is given to two callers: process ");
        assert_int_equal(same, strstr(found->what, "made both calls") != NULL);
        job_free(job);
    }
}

/* Two ranks of the job take one rank of a group: new_group was called by its members only. A set-up
 * that lacks ranks meanwhile is a consequence. */
static void group_rank_that_is_taken(void **state)
{
    (void)state;
    struct job *job = world();
    for (int rank = 0; rank < 2; rank++)
        init_enter(job, rank, WORLD + 1, 2, rank, 100 + (uint64_t)rank);
    for (int rank = 0; rank < 2; rank++)
        init_leave(job, rank, WORLD + 1, 2, rank, 0);
    init_enter(job, 3, WORLD + 1, 2, 1, 102);
    init_enter(job, 2, WORLD + 2, 2, 0, 103);
    ticks(job, 12000);
    const struct found *found = expect(job, "DC109");
    assert_has(found->what,
               "rank 1 of comm 1111 is given to two callers: ranks 1 and 3 of the job");
    assert_string_equal(found->ranks[0], "1");
    assert_string_equal(found->ranks[1], "3");
    assert_has(found->todo, "Create every group with one list of ranks"); /* no PyTorch is loaded */
    assert_null(strstr(found->todo, "new_group"));
    job_free(job);
}

/* Of the first communicator the job's size differs; of one that comes later, or that all take for
 * smaller than the job, the group does. */
static void sizes_differ(void **state)
{
    (void)state;
    enum { OF_JOB, LATER, OF_PART };
    for (int of = OF_JOB; of <= OF_PART; of++) {
        struct job *job = of == LATER ? world() : job_new(RANKS);
        init_enter(job, 0, WORLD + 1, of == OF_JOB ? RANKS : 2, 0, 100);
        init_enter(job, 1, WORLD + 1, of == OF_JOB ? RANKS + 1 : 3, 1, 101);
        const struct found *found = expect(job, "DC109");
        assert_has(found->what, "the number of ranks must be the same");
        assert_int_equal(of != OF_JOB, strstr(found->todo, "Create every group") != NULL);
        assert_int_equal(of == OF_JOB, strstr(found->todo, "WORLD_SIZE") != NULL);
        job_free(job);
    }
}

static void init_scalable(struct job *job, int rank, uint32_t ids)
{
    struct record record = {.api = API_ncclCommInitRankScalable, .phase = RECORD_ENTER};
    record.comm.comm = WORLD;
    record.comm.nranks = 2;
    record.comm.rank = rank;
    record.comm.device = rank;
    record.comm.ordinal = ids;
    job_record(job, rank, record);
}

static void lists_of_unique_ids(void **state)
{
    (void)state;
    for (uint32_t ids = 1; ids <= 2; ids++) {
        struct job *job = job_new(2);
        init_scalable(job, 0, 2);
        init_scalable(job, 1, ids);
        const struct found *found = expect(job, ids == 2 ? NULL : "DC109");
        if (ids == 1)
            assert_has(found->what, "rank 0 creates comm 1111 from 2 unique ids, rank 1 from 1");
        job_free(job);
    }
}

static void shrink(struct job *job, int rank, uint32_t ordinal, uint64_t excluded)
{
    struct record record = {.api = API_ncclCommShrink, .phase = RECORD_ENTER};
    record.comm.comm = WORLD + 1;
    record.comm.parent = WORLD;
    record.comm.rank = rank;
    record.comm.ordinal = ordinal;
    record.comm.pointer = excluded;
    record.comm.bytes = 1;
    job_record(job, rank, record);
}

static void lists_of_excluded_ranks(void **state)
{
    (void)state;
    for (int differ = 0; differ < 2; differ++) {
        struct job *job = world();
        shrink(job, 0, 0, 77);
        shrink(job, 1, 0, differ ? 78 : 77);
        shrink(job, 2, 0, 77);
        struct verdict verdict;
        job_analyze(job, 0, &verdict);
        assert_int_equal(verdict.count, differ);
        if (differ)
            assert_string_equal(verdict.found[0].code, "DC109");
        job_free(job);
    }
}

/* What PyTorch gives groups of these ranks: Python's abs(hash((2, 3))) % 2**31, ... */
enum { NO_COLOR = -1, OF_0_1 = 2130503744, OF_2_3 = 1121016176, OF_ALL = 2003953581 };

static void split(struct job *job, int rank, uint32_t ordinal, int color)
{
    struct record record = {.api = API_ncclCommSplit, .phase = RECORD_ENTER};
    record.comm.comm = color == NO_COLOR ? 0 : WORLD + 1 + ordinal;
    record.comm.parent = WORLD;
    record.comm.rank = rank;
    record.comm.ordinal = ordinal;
    record.comm.color = color;
    job_record(job, rank, record);
}

/* PyTorch splits for each new_group, also on ranks that are not in it. Rank 3 creates the groups in
 * another order; or it calls new_group with a list of ranks that it is not in itself. */
static void groups_in_another_order(void **state)
{
    (void)state;
    static const struct {
        int color[RANKS][2];
        const char *code, *what;
    } cases[] = {
        {{{OF_0_1, NO_COLOR}, {OF_0_1, NO_COLOR}, {NO_COLOR, OF_2_3}, {NO_COLOR, OF_2_3}},
         NULL,
         ""},
        {{{OF_0_1, NO_COLOR}, {OF_0_1, NO_COLOR}, {NO_COLOR, OF_2_3}, {OF_2_3, NO_COLOR}},
         "DC109",
         "rank 3 splits comm 1111 (4 ranks) for a group of ranks 2-3, but in this split (#0) rank "
         "2 "},
        {{{OF_ALL, NO_COLOR}, {OF_ALL, NO_COLOR}, {OF_ALL, NO_COLOR}, {NO_COLOR, NO_COLOR}},
         "DC109",
         "ranks 0-2 split comm 1111 (4 ranks) for a group of ranks 0-3, but in this split (#0) "
         "rank 3 "},
        {{{0, 1 << 21}, {0, 1 << 21}, {1, 1 << 21}, {1, NO_COLOR}}, NULL, ""}, /* a program's own */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = world();
        for (int rank = 0; rank < RANKS; rank++)
            for (uint32_t ordinal = 0; ordinal < 2; ordinal++)
                split(job, rank, ordinal, cases[i].color[rank][ordinal]);
        const struct found *found = expect(job, cases[i].code);
        if (cases[i].code) {
            assert_has(found->what, cases[i].what);
            assert_has(found->todo, "in the same order on all ranks");
        }
        job_free(job);
    }
}

/* NCCL refuses two ranks on one GPU, unless it is reported not to. */
static void gpu_that_is_shared(void **state)
{
    (void)state;
    for (int accepted = 0; accepted < 2; accepted++) {
        struct job *job = job_new(2);
        for (int rank = 0; rank < 2; rank++)
            init_enter(job, rank, WORLD, 2, rank, 100);
        for (int rank = 0; rank < 2; rank++)
            init_leave(job, rank, WORLD, 2, rank, accepted ? 0 : INVALID_USAGE);
        const struct found *found = expect(job, accepted ? NULL : "DC405");
        if (!accepted)
            assert_string_equal(found->ranks[0], "0-1");
        job_free(job);
    }
}

static void gpu_listed_twice(void **state)
{
    (void)state;
    struct job *job = job_new(1);
    struct record record = {.api = API_ncclCommInitAll, .phase = RECORD_ENTER};
    record.comm.comm = WORLD;
    record.comm.nranks = 3;
    record.comm.rank = -1;
    record.comm.device = 2;
    record.comm.flags = RECORD_COMM_DUPLICATE;
    job_record(job, 0, record);
    assert_has(expect(job, "DC405")->what, "lists device 2 twice");
    job_free(job);
}

/* Rank 2 reduces 0 elements; what it calls next differs, or nothing does. */
static void nothing_on_one_rank(void **state)
{
    (void)state;
    for (int leaves = 0; leaves < 2; leaves++) {
        struct job *job = world();
        for (int rank = 0; rank < RANKS; rank++) {
            ALL_REDUCE(job, rank, WORLD, rank == 2 ? 0 : 100);
            if (!leaves)
                ALL_REDUCE(job, rank, WORLD, 1, .redop = REDOP_MAX);
        }
        for (int rank = 0; rank < RANKS && leaves; rank++)
            comm_call_enter(job, rank, API_ncclCommDestroy, WORLD);
        ticks(job, 1000);
        for (uint64_t seed = 0; seed < 6; seed++) {
            struct verdict verdict;
            job_analyze(job, seed, &verdict);
            assert_int_equal(verdict.count, 1);
            assert_string_equal(verdict.found[0].code, "DC102");
            assert_string_equal(verdict.found[0].ranks[0], "0-1,3");
            assert_string_equal(verdict.found[0].ranks[1], "2");
            assert_string_equal(verdict.found[0].call[1], "ncclAllReduce(count=0, float32, sum)");
        }
        job_free(job);
    }
}

/* All ranks with 0; and one rank with 0 where the others do not call. */
static void nothing_is_no_call(void **state)
{
    (void)state;
    for (int everywhere = 0; everywhere < 2; everywhere++) {
        struct job *job = world();
        for (int step = 0; step < 5; step++)
            for (int rank = 0; rank < RANKS; rank++) {
                if (everywhere || rank == 1)
                    ALL_REDUCE(job, rank, WORLD, 0);
                ALL_REDUCE(job, rank, WORLD, 100 + (uint64_t)step);
            }
        ticks(job, 500);
        expect(job, NULL);
        job_free(job);
    }
}

/* A handle that the shim had no room for is compared with nothing, and neither is a scalar in
 * device memory. */
static void operators_that_are_not_known(void **state)
{
    (void)state;
    for (int on_device = 0; on_device < 2; on_device++) {
        struct job *job = world();
        for (int rank = 0; rank < RANKS; rank++) {
            struct record record = {.api = API_ncclAllReduce, .phase = RECORD_ENTER};
            record.op.comm = WORLD;
            record.op.count = 4;
            record.op.datatype = TYPE_FLOAT32;
            record.op.redop = on_device || rank != 1 ? REDOP_PREMULSUM : REDOP_UNKNOWN;
            record.op.scalar = rank == 1 ? 0 : 0x3f000000;
            record.op.flags = on_device && rank == 1 ? RECORD_OP_SCALAR_ON_DEVICE : 0;
            record.op.slot = RECORD_NO_SLOT;
            record.op.rank = rank;
            if (!on_device && rank == 1) { /* it was made, and not destroyed */
                struct record made = {.api = API_ncclRedOpCreatePreMulSum, .phase = RECORD_LEAVE};
                made.leave.comm = WORLD;
                job_record(job, rank, made);
            }
            job_record(job, rank, record);
            call_leave(job, rank);
        }
        expect(job, NULL);
        job_free(job);
    }
}

/* Eight ranks: 5 leaves out a call, 6 makes one twice. Each is reported how it stands to the rest.
 */
static void sides_are_ahead_and_behind(void **state)
{
    (void)state;
    enum { MANY = 8 };
    struct job *job = job_new(MANY);
    job_init(job, WORLD, 0, MANY - 1);
    for (int rank = 0; rank < MANY; rank++)
        for (int step = 0; step < 12; step++) {
            if (rank == 5 && step == 3)
                continue;
            ALL_REDUCE(job, rank, WORLD, 100 + (uint64_t)step);
            if (rank == 6 && step == 2)
                ALL_REDUCE(job, rank, WORLD, 100 + (uint64_t)step);
        }
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct verdict verdict;
        job_analyze(job, seed, &verdict);
        assert_int_equal(verdict.count, 1);
        assert_string_equal(verdict.found[0].ranks[0], "0-4,7");
        assert_has(verdict.found[0].what,
                   "rank 5 is one operation ahead: its #3 is what the others call #4");
        assert_has(verdict.found[0].what,
                   "rank 6 is one operation behind: its #4 is what the others call #3");
    }
    job_free(job);
}

/* Ranks 2 and 3 end before they come, the second because the first did: that alone is named. */
static void the_cause_alone_did_not_arrive(void **state)
{
    (void)state;
    struct job *job = job_new(4);
    job_init(job, WORLD, 0, 3);
    for (int rank = 0; rank < 2; rank++)
        init_enter(job, rank, SECOND, 4, rank, 1000 + (uint64_t)rank);
    for (int rank = 2; rank < 4; rank++) {
        end(job, rank, END_EXIT, 1, false);
        job_sleep_ms(job, 10);
    }
    ticks(job, 2000);
    const struct found *found = expect(job, "DC209");
    assert_string_equal(found->ranks[1], "2");
    assert_has(found->what, "; rank 2 exited with status 1");
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unique_id_used_again),
        cmocka_unit_test(sizes_differ),
        cmocka_unit_test(group_rank_that_is_taken),
        cmocka_unit_test(rank_that_is_taken),
        cmocka_unit_test(lists_of_unique_ids),
        cmocka_unit_test(lists_of_excluded_ranks),
        cmocka_unit_test(groups_in_another_order),
        cmocka_unit_test(gpu_that_is_shared),
        cmocka_unit_test(gpu_listed_twice),
        cmocka_unit_test(nothing_on_one_rank),
        cmocka_unit_test(nothing_is_no_call),
        cmocka_unit_test(operators_that_are_not_known),
        cmocka_unit_test(sides_are_ahead_and_behind),
        cmocka_unit_test(the_cause_alone_did_not_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
