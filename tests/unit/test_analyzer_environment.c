/* What ranks run in: which differences are reported (DC801, DC802), and what fits a hang (DC803, DC805). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD UINT64_C(0x1111000000000001)

enum { RANKS = 4 };

static void set(struct job *job, int rank, const char *name, const char *value)
{
    struct record record = {.api = API_notice_setting};
    record.range.domain = intern(job, rank, name);
    record.range.text = value ? intern(job, rank, value) : 0;
    record.range.id = value ? SETTING_GIVEN : SETTING_PROGRAM;
    job_record(job, rank, record);
}

static void map(struct job *job, int rank, const char *path, uint8_t build)
{
    struct record record = {.api = API_notice_module};
    record.module.path = intern(job, rank, path);
    record.module.build_id[0] = build;
    record.module.build_id_bytes = 20;
    job_record(job, rank, record);
}

/* Of a job whose ranks have set that up; then they create a communicator. */
static struct verdict judged(struct job *job)
{
    struct verdict verdict;
    job_init(job, WORLD, 0, RANKS - 1);
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 0);
    job_free(job);
    return verdict;
}

static void variables_that_must_agree(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    for (int rank = 0; rank < RANKS; rank++)
        set(job, rank, "NCCL_ALGO", rank == 2 ? "Tree" : "Ring");
    struct verdict verdict = judged(job);
    assert_has(verdict.notes, "DC801:");
    assert_has(verdict.last_note.what,
               "NCCL_ALGO differs between ranks: Ring on ranks 0-1,3, Tree on rank 2");
}

static void variable_on_one_rank(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    for (int rank = 0; rank < RANKS; rank++)
        set(job, rank, "NCCL_DEBUG", "WARN");
    set(job, 1, "NCCL_BUFFSIZE", "65536");
    struct verdict verdict = judged(job);
    assert_has(verdict.last_note.what, "not set on ranks 0,2-3, 65536 on rank 1");
    assert_has(verdict.last_note.call[0], "has NCCL_BUFFSIZE not set");
}

static void variable_that_the_program_removed(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    for (int rank = 0; rank < RANKS; rank++)
        set(job, rank, "NCCL_CROSS_NIC", rank ? "1" : NULL);
    assert_has(judged(job).last_note.what, "not set on rank 0, 1 on ranks 1-3");
}

static void variables_of_hosts_and_ranks(void **state)
{
    (void)state;
    static const char *const own[] = {
        "NCCL_DEBUG",         "NCCL_DEBUG_FILE",     "NCCL_IB_HCA",       "NCCL_HOSTID",
        "NCCL_SOCKET_IFNAME", "MASTER_PORT",         "TORCH_LOGS",        "CUDA_VISIBLE_DEVICES",
        "UCX_NET_DEVICES",    "NCCL_TOPO_FILE",      "NCCL_IB_GID_INDEX", "GLOO_SOCKET_IFNAME",
        "NCCL_RAS_ADDR",      "CUDA_LAUNCH_BLOCKING"};
    struct job *job = job_new(RANKS);
    for (int rank = 0; rank < RANKS; rank++)
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            set(job, rank, own[i], rank ? "1" : "0");
    assert_string_equal(judged(job).notes, "");
}

static void builds_of_one_version(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    for (int rank = 0; rank < RANKS; rank++) {
        map(job, rank, rank == 3 ? "/other/libnccl.so.2" : "/usr/lib/libnccl.so.2", rank == 3);
        map(job, rank, "/usr/lib/libother.so", (uint8_t)rank);
    }
    struct verdict verdict = judged(job);
    assert_has(verdict.notes, "DC802:");
    assert_has(verdict.last_note.what, "libnccl differs between ranks: build 00");
    assert_has(verdict.last_note.what, "on rank 3");
}

/* The same job with and without the variable that its version hangs with. */
static void known_bug_of_a_hang(void **state)
{
    (void)state;
    for (int ignored = 0; ignored < 2; ignored++) {
        struct job *job = job_new(RANKS);
        for (int rank = 0; rank < RANKS; rank++)
            set(job, rank, "NCCL_IGNORE_NET_MISMATCH", ignored ? "1" : "0");
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS; rank++) {
            issue(job, rank, (struct call){.api = API_ncclAllReduce, .comm = WORLD, .count = 100});
            wait_enter(job, rank, API_cudaStreamSynchronize, 0);
        }
        ticks(job, 40000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, "DC211");
        assert_int_equal(ignored, strstr(verdict.notes, "DC805") != NULL);
        assert_int_equal(ignored, strstr(found->todo, "NCCL_IGNORE_NET_MISMATCH hides") != NULL);
        assert_int_equal(!ignored, strstr(found->todo, "PCIe ACS") != NULL);
        job_free(job);
    }
}

/* PyTorch's first group, which hangs before PyTorch has named it; another program's "0" is its name. */
static void first_group_of_pytorch(void **state)
{
    (void)state;
    for (int torch = 0; torch < 2; torch++) {
        struct job *job = job_new(RANKS);
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS; rank++) {
            struct record library = {.api = API_notice_library},
                          name = {.api = API_notice_comm_name};
            library.range.text = intern(job, rank, torch ? "PyTorch" : "another");
            library.range.id = 21500;
            job_record(job, rank, library);
            name.range.text = intern(job, rank, "0");
            name.range.id = WORLD;
            job_record(job, rank, name);
            issue(job, rank, (struct call){.api = API_ncclAllReduce, .comm = WORLD, .count = 100});
            wait_enter(job, rank, API_cudaStreamSynchronize, 0);
        }
        ticks(job, 40000);
        assert_has(expect(job, "DC211")->what,
                   torch ? "comm default_pg (4 ranks)" : "comm 0 (4 ranks)");
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_that_must_agree),
        cmocka_unit_test(variable_on_one_rank),
        cmocka_unit_test(variable_that_the_program_removed),
        cmocka_unit_test(variables_of_hosts_and_ranks),
        cmocka_unit_test(builds_of_one_version),
        cmocka_unit_test(known_bug_of_a_hang),
        cmocka_unit_test(first_group_of_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
