/* Memory that runs short at any allocation: the analyzer says so, stays usable, and loses nothing
 * it holds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyzer/analyzer.h"
#include "stream.h"

#define WORLD  UINT64_C(0x5ae7000000000001)
#define HASHED UINT64_C(0x5ae7000000000002)

static uint64_t allocations, fail_at;
static bool counting;

static bool fails(void)
{
    return counting && ++allocations == fail_at;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    if (fails()) {
        errno = ENOMEM;
        return NULL;
    }
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    if (fails()) {
        errno = ENOMEM;
        return NULL;
    }
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (fails()) {
        errno = ENOMEM;
        return NULL;
    }
    return __real_realloc(old, bytes);
}

/* A reduction whose payload is hashed: sends and results as given, by rank. */
static void hashed(struct job *job, uint64_t number, const uint64_t sent[3],
                   const uint64_t received[3], uint32_t nans)
{
    for (int rank = 0; rank < 3; rank++) {
        ALL_REDUCE(job, rank, HASHED, 1024, .stream = 0x30);
        for (int what = HASH_SEND_BEFORE; what <= HASH_RECV_AFTER; what += HASH_RECV_AFTER) {
            struct record record = {.api = API_notice_hash};
            record.hash.comm = HASHED;
            record.hash.number = number;
            record.hash.hash = what == HASH_RECV_AFTER ? received[rank] : sent[rank];
            record.hash.nans = what == HASH_RECV_AFTER ? 0 : nans;
            record.hash.rank = rank;
            record.hash.what = (uint8_t)what;
            record.hash.flags = (1 << HASH_SEND_BEFORE | 1 << HASH_RECV_AFTER) << HASH_EXPECTS;
            record.hash.api = API_ncclAllReduce;
            job_record(job, rank, record);
        }
    }
}

/* Something for DC308, DC501, DC502 and DC503. */
static void hash_payloads(struct job *job)
{
    job_init(job, HASHED, 0, 2);
    for (int rank = 0; rank < 3; rank++) {
        struct record record = {.api = API_notice_hashing};
        record.hashing.entries = 1;
        job_record(job, rank, record);
    }
    for (uint64_t number = 0; number < 16; number++)
        hashed(job, number, (uint64_t[]){number + 1, number + 1, number + 1},
               (uint64_t[]){5, 5, number == 3 ? 6 : 5}, 0);
    hashed(job, 16, (uint64_t[]){1, 2, 3}, (uint64_t[]){5, 5, 5}, 2);
    for (int rank = 0; rank < 3; rank++) {
        struct record record = {.api = API_ddpcheck_hash}, hash = {.api = API_notice_hash};
        record.named.comm = hash.hash.comm = HASHED;
        record.named.name = hash.hash.name = intern(job, rank, "weights");
        record.named.rank = hash.hash.rank = rank;
        hash.hash.serial = job_record(job, rank, record);
        hash.hash.hash = 7 + (rank == 1);
        hash.hash.what = HASH_NAMED;
        hash.hash.flags = 1 << HASH_NAMED << HASH_EXPECTS;
        hash.hash.api = API_ddpcheck_hash;
        job_record(job, rank, hash);
    }
}

static struct job *busy_job(void)
{
    struct job *job = job_new(3);
    job_init(job, WORLD, 0, 2);
    hash_payloads(job);
    for (int rank = 0; rank < 3; rank++) {
        stream_create(job, rank, 0x10, false);
        range_push(job, rank, "forward");
        buffer(job, rank, 0x1000, 64, 0, MEMORY_DEVICE);
        group_start(job, rank);
        for (uint64_t i = 0; i < 10; i++)
            ALL_REDUCE(job, rank, WORLD, i, .sendbuff = 0x1000);
        group_end(job, rank);
        stream_create(job, rank, 0x20, true);
        kernel(job, rank, 0x20, "_Z5scalePf", 0x1000);
        issue(
            job, rank,
            (struct call){.api = API_ncclSend, .comm = WORLD, .count = 4, .root = (rank + 1) % 3});
        event_record(job, rank, 0xe0, 0);
        event_wait(job, rank, 0xe0, 0x10);
        ALL_REDUCE(job, rank, WORLD, rank == 1 ? 7 : 8, .stream = 0x10);
        wait_enter(job, rank, API_cudaStreamSynchronize, 0x10);
    }
    ticks(job, 1000);
    end(job, 2, END_EXIT, 1, false);
    ticks(job, 2000);
    return job;
}

/* Returns how many calls reported that memory was short. */
static int analyze(struct job *job)
{
    int failures = 0;
    counting = true;
    struct analyzer *analyzer = analyzer_new(&(struct analyzer_options){0});
    if (!analyzer) {
        counting = false;
        return 1;
    }
    for (int rank = 0; rank < 3; rank++)
        failures += analyzer_add_process(analyzer, rank, &(struct process_info){.rank = rank}) != 0;
    struct record record;
    int rank;
    for (size_t i = 0; job_event(job, i, &rank, &record); i++)
        failures += analyzer_feed(analyzer, rank < 0 ? 0 : rank, &record) != 0;
    failures += analyzer_finish(analyzer) != 0;
    counting = false;
    analyzer_free(analyzer);
    return failures;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    struct job *job = busy_job();
    allocations = fail_at = 0;
    assert_int_equal(analyze(job), 0);
    uint64_t all = allocations;
    assert_true(all > 100);
    int reported = 0;
    for (fail_at = 1; fail_at <= all; fail_at++) {
        allocations = 0;
        reported += analyze(job) != 0;
    }
    assert_true(reported >
                (int)all / 2); /* the rest were for words or tables that can do without */
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
