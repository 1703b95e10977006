/* test_ring_threads.c: one thread appends while another drains, through ring_append and the head
 * and tail that the collector uses. Under ThreadSanitizer this proves the order of the accesses. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/trace/ring_newest.h"

enum { CAPACITY = 64, RECORDS = 200000 };

static struct ring ring;
static struct record *records;
static _Atomic int finished;
static uint64_t appended;

static void *produce(void *argument)
{
    struct ring_end end = ring_end_of(&ring, records, CAPACITY);
    for (uint64_t i = 0; i < RECORDS; i++) {
        struct record record = {.serial = i + 1, .api = API_ncclAllReduce, .op = {.count = i * 7}};
        appended += (uint64_t)ring_append(&end, &record);
    }
    atomic_store_explicit(&finished, 1, memory_order_release);
    return argument;
}

static void nothing_is_torn_or_reordered(void **state)
{
    (void)state;
    records = aligned_alloc(RING_PAGE, CAPACITY * sizeof *records);
    assert_non_null(records);
    pthread_t producer;
    assert_int_equal(pthread_create(&producer, NULL, produce, NULL), 0);
    uint64_t tail = 0, last = 0, taken = 0;
    for (;;) {
        int last_look = atomic_load_explicit(&finished, memory_order_acquire);
        uint64_t head = atomic_load_explicit(&ring.head, memory_order_acquire);
        for (; tail < head; tail++, taken++) {
            struct record record;
            memcpy(&record, &records[tail % CAPACITY], sizeof record);
            assert_true(record.serial > last && record.op.count == (record.serial - 1) * 7);
            last = record.serial;
        }
        atomic_store_explicit(&ring.tail, tail, memory_order_release);
        if (last_look)
            break;
    }
    assert_int_equal(pthread_join(producer, NULL), 0);
    assert_int_equal(taken, appended);
    assert_int_equal(taken + atomic_load(&ring.lost), RECORDS);
    free(records);
}

enum { NEWEST = 8, NEWEST_RECORDS = 100000 };
static struct ring_segment *segment;
static struct newest_slot slots[NEWEST];

static void *produce_newest(void *argument)
{
    for (uint64_t i = 0; i < NEWEST_RECORDS; i++) {
        struct record record = {.serial = i + 1, .api = API_ncclAllReduce};
        for (int word = 0; word < 10; word++)
            record.word[word] = i * 7 + (uint64_t)word;
        ring_append_newest(segment, slots, NEWEST, &record);
    }
    atomic_store_explicit(&finished, 1, memory_order_release);
    return argument;
}

/* The writer laps the reader all the time: what is read is whole, in order, and with what was
 * missed all that was written; and the last records are there. */
static void newest_records_are_whole(void **state)
{
    (void)state;
    segment = aligned_alloc(RING_PAGE, sizeof *segment);
    assert_non_null(segment);
    memset((void *)segment, 0, sizeof *segment);
    atomic_store(&finished, 0);
    struct newest_reader newest = {0};
    newest_begin(&newest, segment);
    pthread_t producer;
    assert_int_equal(pthread_create(&producer, NULL, produce_newest, NULL), 0);
    uint64_t last = 0, taken = 0;
    for (bool last_look = false; !last_look;) {
        last_look = atomic_load_explicit(&finished, memory_order_acquire);
        int waits = newest_look(&newest, segment, slots, NEWEST);
        assert_true(waits >= 0);
        for (; waits; waits = newest_advance(&newest, NEWEST)) {
            const struct record *record = newest_next(&newest, NEWEST);
            assert_true(record->serial > last);
            for (int word = 0; word < 10; word++)
                assert_int_equal(record->word[word], (record->serial - 1) * 7 + (uint64_t)word);
            last = record->serial;
            taken++;
        }
    }
    assert_int_equal(pthread_join(producer, NULL), 0);
    assert_int_equal(last, NEWEST_RECORDS);
    assert_int_equal(taken + newest.missed, NEWEST_RECORDS);
    free(newest.copy);
    free(segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_torn_or_reordered),
                                       cmocka_unit_test(newest_records_are_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
