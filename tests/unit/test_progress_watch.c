/* What GPU streams have reached, with the times of the readings, and between which records it goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "collector/producer.h"
#include "lib/base/clock.h"
#include "lib/base/fault_guard.h"
#include "tests/unit/ring_file.h"

enum { SLOTS = 3, PATIENCE_S = 60 };

static struct ring_file *file;
static uint64_t file_bytes;
static struct progress_watch *watch;
static struct ring_reader *reader;
static struct watched_progress *watched;
static struct progress_sample sample[PROGRESS_SAMPLES];

static int watch_file(void **state)
{
    struct error err;
    if (scratch_make(state))
        return -1;
    const struct process_info info = process_named("one", (int)getpid(), 5000);
    file = ring_file_make(scratch_path(state, "one.ring"), &info, &small_ring, &file_bytes);
    file->slots = SLOTS;
    if (ring_reader_open(&reader, scratch_path(state, "one.ring"), &err) != RING_READER_OPEN)
        fail_msg("%s", err.text);
    watch = progress_watch_new();
    assert_non_null(watch);
    watched = progress_watch_add(watch, reader);
    assert_non_null(watched);
    return 0;
}

static int unwatch_file(void **state)
{
    progress_watch_remove(watched);
    progress_watch_free(watch);
    ring_reader_close(reader);
    munmap(file, file_bytes);
    return scratch_remove(state);
}

static void gpu_reaches(int slot, uint64_t started, uint64_t done)
{
    atomic_store(&file->slot[slot].started, started);
    atomic_store(&file->slot[slot].done, done);
}

static void sleep_ms(long ms)
{
    const struct timespec rest = {.tv_nsec = ms * 1000000};
    nanosleep(&rest, NULL);
}

static void each_change_is_one_sample(void **state)
{
    (void)state;
    uint64_t before_ns = monotonic_now_ns();
    assert_int_equal(progress_watch_take(watched, true, sample, PROGRESS_SAMPLES), 0);
    gpu_reaches(1, 1, 0);
    assert_int_equal(progress_watch_take(watched, true, sample, PROGRESS_SAMPLES), 1);
    assert_int_equal(sample[0].slot, 1);
    assert_int_equal(sample[0].reached.started, 1);
    assert_int_equal(sample[0].reached.done, 0);
    assert_true(sample[0].time_ns >= before_ns && sample[0].time_ns <= monotonic_now_ns());
    assert_int_equal(progress_watch_take(watched, true, sample, PROGRESS_SAMPLES), 0);
}

/* What began and ended between two readings began after the first of them. */
static void what_was_missed_began_after_the_reading_before(void **state)
{
    (void)state;
    uint64_t before_ns = monotonic_now_ns();
    assert_int_equal(progress_watch_take(watched, true, sample, PROGRESS_SAMPLES), 0);
    sleep_ms(2);
    gpu_reaches(1, 3, 3);
    assert_int_equal(progress_watch_take(watched, true, sample, PROGRESS_SAMPLES), 1);
    assert_int_equal(sample[0].reached.started, 3);
    assert_int_equal(sample[0].reached.done, 3);
    assert_in_range(sample[0].idle_us, 1, (sample[0].time_ns - before_ns) / 1000);
    gpu_reaches(1, 4, 3);
    assert_int_equal(progress_watch_take(watched, true, sample, PROGRESS_SAMPLES), 1);
    assert_int_equal(sample[0].idle_us, 0);
    gpu_reaches(1, 4, 4);
    assert_int_equal(progress_watch_take(watched, true, sample, PROGRESS_SAMPLES), 1);
    assert_int_equal(sample[0].idle_us, 0);
}

/* A sample is older than the call that takes it: then it was the thread that read. A slot that goes
 * on while nobody takes samples is seen at several times. */
static void the_thread_reads_while_a_stream_gets_on(void **state)
{
    (void)state;
    uint64_t number = 0, give_up_ns = monotonic_now_ns() + PATIENCE_S * UINT64_C(1000000000);
    int own = 0;
    while (own < 2 && monotonic_now_ns() < give_up_ns) {
        for (int i = 0; i < 2; i++) {
            number++;
            gpu_reaches(0, number, number);
            sleep_ms(3);
        }
        uint64_t before_ns = monotonic_now_ns();
        int taken = progress_watch_take(watched, true, sample, PROGRESS_SAMPLES);
        own = 0;
        for (int i = 0; i < taken; i++) {
            own += sample[i].time_ns < before_ns;
            assert_true(i == 0 || (sample[i].time_ns >= sample[i - 1].time_ns &&
                                   sample[i].reached.started >= sample[i - 1].reached.started &&
                                   sample[i].reached.done >= sample[i - 1].reached.done));
        }
    }
    assert_true(own >= 2);
}

static void changes_that_nobody_takes_are_merged(void **state)
{
    (void)state;
    for (uint64_t number = 1; number <= PROGRESS_SAMPLES + 10; number++) {
        gpu_reaches(2, number, number);
        assert_int_equal(progress_watch_take(watched, true, sample, 0), 0);
    }
    assert_int_equal(progress_watch_take(watched, false, sample, PROGRESS_SAMPLES),
                     PROGRESS_SAMPLES);
    assert_int_equal(sample[0].reached.done, 1);
    assert_int_equal(progress_watch_take(watched, true, sample, PROGRESS_SAMPLES), 1);
    assert_int_equal(sample[0].reached.done, PROGRESS_SAMPLES + 10);
}

static void a_file_that_is_cut_has_no_progress(void **state)
{
    fault_guard_install(); /* cmocka has its own handler since the file was opened */
    gpu_reaches(0, 1, 1);
    assert_int_equal(truncate(scratch_path(state, "one.ring"), 0), 0);
    progress_watch_take(watched, true, sample, PROGRESS_SAMPLES); /* the thread may have read it */
    assert_int_equal(progress_watch_take(watched, true, sample, PROGRESS_SAMPLES), 0);
    assert_int_equal(truncate(scratch_path(state, "one.ring"), (off_t)file_bytes), 0);
}

static void issue_call(uint64_t serial, uint64_t time_ns)
{
    struct ring_end end = ring_file_end(file, 0, RING_CONTROL);
    struct record record = {.serial = serial, .api = API_ncclAllReduce, .time_ns = time_ns};
    assert_int_equal(ring_append(&end, &record), 1);
}

static struct producer *make_producer(void)
{
    struct producer *producer = calloc(1, sizeof *producer);
    assert_non_null(producer);
    producer->reader = reader;
    producer->progress = watched;
    producer->liveness.pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    assert_true(producer->liveness.pidfd >= 0);
    return producer;
}

static void free_producer_only(struct producer *producer)
{
    liveness_close(&producer->liveness);
    free(producer->stored);
    free(producer);
}

/* The times of the other records are such that it does not matter when the readings are. */
static void progress_goes_between_the_records_by_time(void **state)
{
    struct error err = {""};
    struct store *store;
    struct record_batch *batch = batch_new();
    struct producer *producer = make_producer();
    assert_int_equal(store_open(&store, scratch_path(state, "one.db"), &err), 0);
    issue_call(1, 10);
    issue_call(2, 20);
    issue_call(3, UINT64_MAX / 2);
    gpu_reaches(1, 1, 0);

    assert_int_equal(producer_pass(producer, store, batch, 1, 30, &err), 1);
    assert_int_equal(batch->count, 1); /* records of before the reading are still to come */
    assert_int_equal(producer_pass(producer, store, batch, 1, 30, &err), 1);
    assert_int_equal(batch->count, 2);
    gpu_reaches(1, 1, 1);
    sleep_ms(2); /* the thread has read it, or its last reading is too old for the pass */
    assert_int_equal(producer_pass(producer, store, batch, 8, 30, &err), 1);
    assert_int_equal(batch->count, 5);
    assert_int_equal(batch->record[2].api, API_notice_progress);
    assert_int_equal(batch->record[2].progress.slot, 1);
    assert_int_equal(batch->record[2].progress.started, 1);
    assert_int_equal(batch->record[2].progress.done, 0);
    assert_int_equal(batch->record[3].api, API_notice_progress);
    assert_int_equal(batch->record[3].progress.done, 1);
    assert_true(batch->record[3].time_ns >= batch->record[2].time_ns);
    assert_int_equal(batch->record[4].serial, 3);

    free_producer_only(producer);
    batch_free(batch);
    assert_int_equal(store_close(store, &err), 0);
}

static void progress_waits_for_room_in_the_batch(void **state)
{
    struct error err = {""};
    struct store *store;
    struct record_batch *batch = batch_new();
    struct producer *producer = make_producer();
    assert_int_equal(store_open(&store, scratch_path(state, "one.db"), &err), 0);
    gpu_reaches(0, 1, 0);
    gpu_reaches(1, 1, 0);
    batch->count = BATCH_RECORDS - 1;
    assert_int_equal(producer_pass(producer, store, batch, 8, 30, &err), 0);
    assert_int_equal(batch->count, BATCH_RECORDS);
    assert_int_equal(batch->record[BATCH_RECORDS - 1].progress.slot, 0);
    batch_clear(batch);
    assert_int_equal(producer_pass(producer, store, batch, 8, 30, &err), 0);
    assert_int_equal(batch->count, 1);
    assert_int_equal(batch->record[0].progress.slot, 1);

    free_producer_only(producer);
    batch_free(batch);
    assert_int_equal(store_close(store, &err), 0);
}

int main(void)
{
#define WATCHED(test) cmocka_unit_test_setup_teardown(test, watch_file, unwatch_file)
    const struct CMUnitTest tests[] = {
        WATCHED(each_change_is_one_sample),
        WATCHED(what_was_missed_began_after_the_reading_before),
        WATCHED(the_thread_reads_while_a_stream_gets_on),
        WATCHED(changes_that_nobody_takes_are_merged),
        WATCHED(a_file_that_is_cut_has_no_progress),
        WATCHED(progress_goes_between_the_records_by_time),
        WATCHED(progress_waits_for_room_in_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
