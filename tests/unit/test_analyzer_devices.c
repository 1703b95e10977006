/* Devices, buffers and lost records: DC401, DC403, DC406, DC901, DC902; and the catalogue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/trace/lacks.h"
#include "lib/trace/unseen.h"
#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum { BASE = 0x10000, BYTES = 4096 };

static void buffer_on_another_device(void **state)
{
    (void)state;
    static const struct {
        int device;
        enum memory_type type;
        const char *code;
    } cases[] = {
        {1, MEMORY_DEVICE, NULL},
        {0, MEMORY_DEVICE, "DC401"},
        {-1, MEMORY_HOST_PINNED, NULL},
        {0, MEMORY_MANAGED, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = job_new(2);
        job_init(job, WORLD, 0, 1);
        buffer(job, 1, BASE, BYTES, cases[i].device, cases[i].type);
        for (int step = 0; step < 5; step++)
            for (int rank = 0; rank < 2; rank++)
                ALL_REDUCE(job, rank, WORLD, 16, .sendbuff = BASE, .recvbuff = BASE);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, cases[i].code);
        if (cases[i].code) {
            assert_string_equal(found->ranks[0], "1");
            assert_int_equal(found->times, 5);
            assert_int_equal(found->number, 0);
        }
        job_free(job);
    }
}

/* Elements of 4 bytes that fit the allocation exactly, for each kind and 2 ranks. */
static void operation_past_the_end(void **state)
{
    (void)state;
    static const struct {
        uint16_t api;
        uint64_t fits;
        bool in_send;
        int root;
    } cases[] = {
        {API_ncclAllReduce, BYTES / 4, true, 0},     {API_ncclAllReduce, BYTES / 4, false, 0},
        {API_ncclAllGather, BYTES / 8, false, 0},    {API_ncclAllGather, BYTES / 4, true, 0},
        {API_ncclReduceScatter, BYTES / 8, true, 0}, {API_ncclReduceScatter, BYTES / 4, false, 0},
        {API_ncclAlltoAll, BYTES / 8, true, 0},      {API_ncclGather, BYTES / 8, false, 0},
        {API_ncclScatter, BYTES / 8, true, 0},       {API_ncclReduce, BYTES / 4, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int over = 0; over < 2; over++) {
            struct job *job = job_new(2);
            job_init(job, WORLD, 0, 1);
            buffer(job, 0, BASE, BYTES, 0, MEMORY_DEVICE);
            for (int rank = 0; rank < 2; rank++) {
                struct call call = {.api = cases[i].api,
                                    .comm = WORLD,
                                    .count = cases[i].fits + (uint64_t)over,
                                    .root = cases[i].root};
                *(cases[i].in_send ? &call.sendbuff : &call.recvbuff) = BASE;
                issue(job, rank, call);
            }
            struct verdict verdict;
            if (over)
                assert_string_equal(expect_in(job, &verdict, "DC406")->ranks[0], "0");
            else
                expect(job, NULL);
            job_free(job);
        }
    /* Where the root alone uses the buffer the others' does not count. */
    struct job *job = job_new(2);
    job_init(job, WORLD, 0, 1);
    buffer(job, 0, BASE, 4, 0, MEMORY_DEVICE);
    for (int rank = 0; rank < 2; rank++)
        issue(job, rank,
              (struct call){
                  .api = API_ncclReduce, .comm = WORLD, .count = 64, .recvbuff = BASE, .root = 1});
    expect(job, NULL);
    job_free(job);
}

static void mapping(struct job *job, uint16_t api, uint64_t base)
{
    struct record record = {.api = api};
    record.memory.pointer = base;
    record.memory.bytes = BYTES;
    job_record(job, 0, record);
}

/* What cuMemMap put right behind a mapping belongs to it, until it is unmapped. */
static void past_the_end_of_mappings(void **state)
{
    (void)state;
    enum { ALONE, FOLLOWED, UNMAPPED, CASES };
    for (int how = 0; how < CASES; how++) {
        struct job *job = job_new(2);
        struct verdict verdict;
        job_init(job, WORLD, 0, 1);
        mapping(job, API_cuMemMap, BASE);
        if (how != ALONE)
            mapping(job, API_cuMemMap, BASE + BYTES);
        if (how == UNMAPPED)
            mapping(job, API_cuMemUnmap, BASE + BYTES);
        buffer(job, 0, BASE, BYTES, 0, MEMORY_DEVICE_MAPPED);
        for (int rank = 0; rank < 2; rank++)
            issue(job, rank,
                  (struct call){.api = API_ncclAllReduce,
                                .comm = WORLD,
                                .count = BYTES / 4 + 1,
                                .recvbuff = BASE,
                                .sendbuff = BASE});
        const struct found *found = expect_in(job, &verdict, how == FOLLOWED ? NULL : "DC406");
        if (how != FOLLOWED)
            assert_int_equal(found->certainty, POSSIBLE);
        job_free(job);
    }
}

static void kernel_with_far_pointer(void **state)
{
    (void)state;
    enum { FAR, PEER_ACCESS, NEAR, GUESSED, FREED, CASES };
    for (int how = 0; how < CASES; how++) {
        struct job *job = job_new(1);
        job_init(job, WORLD, 0, 0);
        uint64_t kernel = intern(job, 0, "conv2d_forward");
        buffer(job, 0, BASE, BYTES, 0, MEMORY_DEVICE);
        buffer(job, 0, 4 * BASE, BYTES, how == NEAR ? 0 : 1, MEMORY_DEVICE);
        if (how == PEER_ACCESS) {
            struct record access = {.api = API_cudaDeviceEnablePeerAccess};
            access.device_access.peer = 1;
            job_record(job, 0, access);
        }
        if (how == FREED) {
            struct record release = {.api = API_cudaFree, .phase = RECORD_ENTER};
            release.wait.dst = 4 * BASE;
            job_record(job, 0, release);
            call_leave(job, 0);
        }
        struct record launch = {.api = API_cudaLaunchKernel, .stream = 0x70};
        launch.launch.function = kernel;
        launch.launch.count = 2;
        launch.launch.pointer[0] = BASE;
        launch.launch.pointer[1] = 4 * BASE + 64;
        launch.launch.inferred = how == GUESSED ? 2 : 0;
        job_record(job, 0, launch);
        job_record(job, 0, launch);
        struct verdict verdict;
        const struct found *found =
            expect_in(job, &verdict, how == FAR || how == GUESSED ? "DC403" : NULL);
        if (verdict.count) {
            assert_int_equal(found->certainty, how == FAR ? CERTAIN : POSSIBLE);
            assert_int_equal(found->times, 2);
            assert_non_null(strstr(found->call[0], "conv2d_forward"));
        }
        job_free(job);
    }
}

static void lost_records_weaken(void **state)
{
    (void)state;
    for (int bulk = 0; bulk < 2; bulk++) {
        struct job *job = job_new(2);
        job_init(job, WORLD, 0, 1);
        struct record lost = {.api = API_notice_lost};
        lost.lost.control = 3;
        lost.lost.bulk = 9 * (uint64_t)bulk;
        job_record(job, 0, lost);
        ALL_REDUCE(job, 0, WORLD, 8);
        ALL_REDUCE(job, 1, WORLD, 9);
        struct verdict verdict;
        job_analyze(job, 0, &verdict);
        assert_int_equal(verdict.count, 2);
        assert_string_equal(verdict.found[0].code, "DC901");
        assert_int_equal(verdict.found[0].severity, SEVERITY_WARNING);
        assert_non_null(strstr(verdict.found[0].what, ", from 20"));
        assert_has(verdict.found[0].what, "and in the whole job: hang (DC211);");
        assert_has(verdict.found[0].what,
                   "mismatch (DC101 to DC107, DC109 to DC111), hang (DC201 to "
                   "DC203, DC205, DC206, DC208 to DC210), hazard (DC307), "
                   "device (DC401 to DC407)");
        assert_int_equal(strstr(verdict.found[0].what, "DC504") != NULL, bulk);
        assert_string_equal(verdict.found[1].code, "DC102");
        assert_int_equal(verdict.found[1].certainty, POSSIBLE);
        job_free(job);
    }
}

/* The advice fits what was noticed of the cause. */
static void the_advice_fits_the_cause(void **state)
{
    static const struct {
        unsigned noticed; /* enum unseen; UNSEEN_ANYTHING: nothing */
        uint64_t control, bulk;
        const char *todo, *not_said;
    } cases[] = {
        {UNSEEN_ANYTHING, 1, 0, "Certain findings remain true", "longjmp"},
        {UNSEEN_LEFT, 1, 0, "calls return: a longjmp", "rings more room"},
        {UNSEEN_CONFINED, 1, 0, "seccomp filter refuse", "rings more room"},
        {UNSEEN_DAMAGED, 1, 0, "through a bad pointer", "rings more room"},
        {UNSEEN_LEFT, 9, 0, "is not known. Certain findings remain true", "seccomp"},
        {UNSEEN_CONFINED, 1, 9, "goes on. Certain findings remain true", "longjmp"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job *job = job_new(1);
        job_init(job, WORLD, 0, 0);
        struct record blind = {.api = API_notice_blind, .range.id = cases[i].noticed};
        struct record lost = {.api = API_notice_lost};
        lost.lost.control = cases[i].control;
        lost.lost.bulk = cases[i].bulk;
        if (cases[i].noticed != UNSEEN_ANYTHING)
            job_record(job, 0, blind);
        job_record(job, 0, lost);
        struct verdict verdict;
        job_analyze(job, 0, &verdict);
        assert_in_range(verdict.count, 1, 2); /* DC903 is the other one */
        const struct found *found = &verdict.found[0];
        if (strcmp(found->code, "DC901") != 0)
            found = &verdict.found[verdict.count - 1];
        assert_string_equal(found->code, "DC901");
        assert_has(found->todo, cases[i].todo);
        assert_null(strstr(found->todo, cases[i].not_said));
        assert_true(cases[i].control + cases[i].bulk > 1 ||
                    strstr(found->what, "% of all there ("));
        job_free(job);
    }
}

/* Sixteen ranks that lose records are one finding, with the ranks in ranges. */
static void losses_are_one_finding(void **state)
{
    (void)state;
    struct job *job = job_new(JOB_RANKS_MAX);
    job_init(job, WORLD, 0, JOB_RANKS_MAX - 1);
    for (uint64_t times = 1; times < 4; times++)
        for (int rank = 0; rank < JOB_RANKS_MAX; rank++) {
            struct record lost = {.api = API_notice_lost};
            lost.lost.control = rank < 12 ? times : 0;
            lost.lost.bulk = 10 * times;
            job_record(job, rank, lost);
        }
    struct verdict verdict;
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 1);
    assert_string_equal(verdict.found[0].code, "DC901");
    assert_int_equal(verdict.found[0].sides, 2);
    assert_string_equal(verdict.found[0].ranks[0], "0-11");
    assert_string_equal(verdict.found[0].ranks[1], "12-15");
    assert_non_null(strstr(verdict.found[0].what,
                           "516 records of ranks 0-15 (most of rank 0) were lost (36 of"));
    job_free(job);
}

/* A rank without a trace is a note, and holds nobody up. */
static void unseen_rank_is_a_note(void **state)
{
    (void)state;
    struct job *job = job_new(2);
    for (int rank = 0; rank < 2; rank++)
        init_enter(job, rank, WORLD, 3, rank, 0);
    for (int rank = 0; rank < 2; rank++)
        init_leave(job, rank, WORLD, 3, rank, 0);
    for (int rank = 0; rank < 2; rank++) {
        ALL_REDUCE(job, rank, WORLD, 8);
        wait_enter(job, rank, API_cudaStreamSynchronize, 0);
    }
    ticks(job, 15000);
    expect(job, NULL);
    job_free(job);
}

static void every_check_explains_itself(void **state)
{
    (void)state;
    enum code before = CODE_NONE;
    for (const struct check *check = check_next(NULL); check; check = check_next(check)) {
        const char *code = code_name(check->code);
        assert_true(check->code > before);
        assert_true(*check->title && *check->text);
        assert_true(code_family(check->code) == FAMILY_TRACE ||
                    (*check->example && *check->fix_c && *check->fix_torch && *check->source));
        for (const struct cause *cause = check->causes; cause && cause->what; cause++)
            assert_true(*cause->what && *cause->look);
        assert_int_equal(code_find(code), check->code);
        assert_ptr_equal(check_find(code), check);
        before = check->code;
    }
    assert_null(check_find("DC000"));
}

/* "DC301-DC306, DC308": the codes that need `bit`, as the database has them. */
static void codes_needing(uint32_t bit, char *text, size_t bytes)
{
    size_t used = 0;
    int first = 0, last = -1;
    *text = '\0';
    for (const struct check *check = check_next(NULL); check || first; check = check_next(check)) {
        if (check && !(check->needs & bit))
            continue;
        if (check && (int)check->code == last + 1) {
            last++;
            continue;
        }
        if (first)
            used += (size_t)snprintf(text + used, bytes - used, "%sDC%d", used ? ", " : "", first);
        if (first < last)
            used += (size_t)snprintf(text + used, bytes - used, "-DC%d", last);
        if (!check)
            return;
        first = last = (int)check->code;
    }
}

static void lacks_name_the_checks_that_need_them(void **state)
{
    (void)state;
    for (const struct lack_text *lack = lack_texts; lack->bit; lack++) {
        char codes[256];
        codes_needing(lack->bit, codes, sizeof codes);
        assert_string_equal(lack->codes, codes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffer_on_another_device),
        cmocka_unit_test(operation_past_the_end),
        cmocka_unit_test(past_the_end_of_mappings),
        cmocka_unit_test(kernel_with_far_pointer),
        cmocka_unit_test(lost_records_weaken),
        cmocka_unit_test(the_advice_fits_the_cause),
        cmocka_unit_test(losses_are_one_finding),
        cmocka_unit_test(unseen_rank_is_a_note),
        cmocka_unit_test(every_check_explains_itself),
        cmocka_unit_test(lacks_name_the_checks_that_need_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
