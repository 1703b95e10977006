/* One process that drives several devices, and is not reported to look for a condition on the rank:
 * DC201's advice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum { DEVICES = 3, MAIN_THREAD = 100, STREAM = 0x10 };

/* What ncclCommInitAll leaves: the process has all ranks. */
static struct job *one_process_of(bool thread_each)
{
    struct job *job = job_new(1);
    for (int device = 0; device < DEVICES; device++) {
        if (thread_each)
            job_thread(job, 0, MAIN_THREAD + (uint32_t)device);
        struct record notice = {.api = API_notice_member};
        notice.comm.comm = WORLD;
        notice.comm.nranks = DEVICES;
        notice.comm.rank = notice.comm.device = device;
        notice.comm.gpu = 1000 + (uint64_t)device;
        job_record(job, 0, notice);
    }
    return job;
}

static struct job *one_process(void)
{
    return one_process_of(false);
}

static void reduce_on(struct job *job, int device, uint64_t number, uint64_t group)
{
    struct record record = {
        .api = API_ncclAllReduce, .phase = RECORD_ENTER, .stream = STREAM + (uint64_t)device};
    record.op.comm = WORLD;
    record.op.rank = device;
    record.op.number = number;
    record.op.count = 1000;
    record.op.datatype = TYPE_FLOAT32;
    record.op.slot = 1 + (uint32_t)device;
    record.op.launch = number + 1;
    record.op.group = group;
    record.stack = 0x1000;
    job_record(job, 0, record);
    call_leave(job, 0);
}

/* Each device's reduction is waited for before the next device's is made. */
static void a_forgotten_group(void **state)
{
    (void)state;
    for (uint64_t before = 0; before < 2; before++) { /* reductions that went well, before */
        struct job *job = one_process();
        for (uint64_t number = 0; number < before; number++) {
            group_start(job, 0);
            for (int device = 0; device < DEVICES; device++)
                reduce_on(job, device, number, 1 + number);
            group_end(job, 0);
            for (int device = 0; device < DEVICES; device++)
                wait_done(job, 0, API_cudaStreamSynchronize, STREAM + (uint64_t)device);
        }
        reduce_on(job, 0, before, 0);
        wait_enter(job, 0, API_cudaStreamSynchronize, STREAM);
        ticks(job, 12000);
        const struct found *found = expect(job, "DC201");
        assert_string_equal(found->ranks[1], "1-2");
        assert_non_null(strstr(found->todo, "in one ncclGroup"));
        assert_non_null(strstr(found->where[1], "in cudaStreamSynchronize, waiting for nccl"));
        assert_null(strstr(found->where[1], "not called"));
        job_free(job);
    }
}

/* A thread for each device: here a group is no help, and a condition on the rank is what to look
 * for. */
static void a_thread_for_each_device(void **state)
{
    (void)state;
    struct job *job = one_process();
    for (uint64_t number = 0; number < 2; number++)
        for (int device = 0; device < DEVICES; device++) {
            job_thread(job, 0, MAIN_THREAD + (uint32_t)device);
            if (number == 0 || device == 0)
                reduce_on(job, device, number, 0);
            if (number == 1 && device == 0)
                wait_enter(job, 0, API_cudaStreamSynchronize, STREAM + (uint64_t)device);
        }
    ticks(job, 12000);
    const struct found *found = expect(job, "DC201");
    assert_string_equal(found->ranks[1], "1-2");
    assert_non_null(strstr(found->todo, "a condition on the rank"));
    assert_non_null(strstr(found->todo, "Hold no lock"));
    job_free(job);
}

/* The threads that created them have issued nothing: they are not in the wait of rank 0's. */
static void a_thread_before_its_first(void **state)
{
    (void)state;
    struct job *job = one_process_of(true);
    job_thread(job, 0, MAIN_THREAD);
    reduce_on(job, 0, 0, 0);
    wait_enter(job, 0, API_cudaStreamSynchronize, STREAM);
    ticks(job, 12000);
    const struct found *found = expect(job, "DC201");
    assert_string_equal(found->ranks[1], "1-2");
    assert_string_equal(found->where[1], "in no call of NCCL or CUDA");
    assert_non_null(strstr(found->todo, "a condition on the rank"));
    job_free(job);
}

/* A process for each device. */
static void a_process_for_each_device(void **state)
{
    (void)state;
    struct job *job = job_new(DEVICES);
    job_init(job, WORLD, 0, DEVICES - 1);
    ALL_REDUCE(job, 0, WORLD, 1000, .stream = STREAM);
    wait_enter(job, 0, API_cudaStreamSynchronize, STREAM);
    ticks(job, 12000);
    assert_non_null(strstr(expect(job, "DC201")->todo, "a condition on the rank"));
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forgotten_group),
        cmocka_unit_test(a_thread_for_each_device),
        cmocka_unit_test(a_thread_before_its_first),
        cmocka_unit_test(a_process_for_each_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
