/* Memory that runs short at any allocation of a hub: it drops what finds no room, says so,
 * and goes on. */
#include <errno.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "hub_job.h"

static _Atomic uint64_t allocations; /* the hub stores and judges in two threads */
static uint64_t fail_at;
static bool counting;

static bool fails(void)
{
    if (!counting || ++allocations != fail_at)
        return false;
    errno = ENOMEM;
    return true;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return fails() ? NULL : __real_realloc(old, bytes);
}

/* A rank calls nothing more, and a host has a finding of its own. */
static struct job *hanging_job(void)
{
    struct job *job = hub_job_new();
    hub_job_operations(job, COMM, 3);
    ticks(job, 500);
    for (int rank = 0; rank < HUB_RANKS; rank++)
        if (rank != 3) {
            ALL_REDUCE(job, rank, COMM, 64, .stream = HUB_STREAM);
            wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
        }
    ALL_REDUCE(job, 3, SECOND, 64, .stream = HUB_STREAM);
    ticks(job, 4000);
    return job;
}

/* Only the hub's allocations fail. Returns how many of its steps ended it. */
static int step_hub(struct test_hub *test, uint64_t now_ns)
{
    struct error err;
    for (int i = 0; i < test->hosts; i++)
        join_pass(test->host[i].join, test->host[i].analyzer, now_ns, now_ns);
    counting = true;
    int result = hub_step(test->hub, now_ns, 0, &err);
    counting = false;
    return result < 0;
}

/* Returns how many steps ended the hub. */
static int run_hub(struct job *job)
{
    struct test_hub test;
    struct record record;
    uint64_t now_ns = 0;
    int rank, ended = 0;
    hub_job_begin(&test, 2);
    for (size_t i = 0; job_event(job, i, &rank, &record); i++) {
        now_ns = record.time_ns;
        if (rank >= 0) {
            struct test_host *host = &test.host[rank / test.ranks_of_host];
            hub_job_feed(host, rank - host->first, &record);
            continue;
        }
        for (int k = 0; k < test.hosts; k++)
            hub_job_feed(&test.host[k], 0, &record);
        for (int turn = 0; turn < 3; turn++)
            ended += step_hub(&test, now_ns);
    }
    hub_job_finish(&test, now_ns);
    return ended;
}

static void no_allocation_ends_the_hub(void **state)
{
    (void)state;
    struct job *job = hanging_job();
    fail_at = 0;
    allocations = 0;
    assert_int_equal(run_hub(job), 0);
    uint64_t all = allocations, step = all / 200 + 1;
    assert_true(all > 100);
    for (uint64_t at = 1; at <= all; at += step) {
        allocations = 0;
        fail_at = at;
        assert_int_equal(run_hub(job), 0);
    }
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_allocation_ends_the_hub)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
