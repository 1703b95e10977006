/* Rings that grow are read in order, and from a stored position on. What a wild pointer writes into
 * them: tests/fuzz/fuzz_ring.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/trace/ring_reader.h"
#include "tests/unit/ring_file.h"

enum { FIRST = 16, SECOND = 64, THREADS = 2, TAKEN = 256 };

static struct ring_file *file;
static uint64_t file_bytes, serial;
static struct ring_end end[THREADS][RING_KINDS];

/* Two threads, and behind their segments room for parts. */
static const char *make(void **state)
{
    const char *path = scratch_path(state, "growth.ring");
    const struct process_info info = process_named("one", 1, 5000);
    const struct ring_shape shape = {.threads = THREADS + 4, .control = FIRST, .bulk = FIRST};
    file = ring_file_make(path, &info, &shape, &file_bytes);
    serial = 0;
    for (uint32_t thread = 0; thread < THREADS; thread++) {
        ring_file_add_segment(file, thread);
        for (int kind = 0; kind < RING_KINDS; kind++)
            end[thread][kind] = ring_file_end(file, thread, kind);
    }
    return path;
}

/* As the shim does when a ring is full; `which`: of the places behind the segments. */
static void grow(uint32_t thread, int kind, uint32_t which)
{
    struct ring_segment *segment = ring_file_segment(file, thread);
    struct ring_end *to = &end[thread][kind];
    uint64_t offset = (uint64_t)((char *)ring_file_segment(file, THREADS) - (char *)file) +
                      which * SECOND * (uint64_t)RECORD_BYTES;
    uint32_t part = segment->parts[kind];
    assert_true(offset + SECOND * (uint64_t)RECORD_BYTES <= file_bytes);
    segment->part[kind][part] =
        (struct ring_part){.begin = to->head, .offset = offset, .records = SECOND};
    segment->parts[kind] = part + 1;
    to->records = (struct record *)((char *)file + offset);
    to->capacity = SECOND;
    to->tail = to->head;
}

static int put(uint32_t thread, int kind)
{
    struct record record = {.serial = serial + 1, .api = API_cudaMalloc, .thread = thread};
    int appended = ring_append(&end[thread][kind], &record);
    serial += (uint64_t)appended;
    return appended;
}

static struct ring_reader *open_reader(const char *path)
{
    struct ring_reader *reader;
    struct error err = {""};
    if (ring_reader_open(&reader, path, &err) != RING_READER_OPEN)
        fail_msg("%s", err.text);
    return reader;
}

/* Takes all that waits; it has to begin behind `from`. Returns the last serial. */
static uint64_t take_from(struct ring_reader *reader, uint64_t from)
{
    struct record record[TAKEN];
    struct error err = {""};
    if (ring_reader_look(reader, 1, true, &err) < 0)
        fail_msg("%s", err.text);
    for (int got; (got = ring_reader_take(reader, record, 5, &err)) != 0;) {
        assert_true(got > 0);
        for (int i = 0; i < got; i++)
            assert_int_equal(record[i].serial, ++from);
    }
    return from;
}

static void rings_that_grew_are_read_in_order(void **state)
{
    struct ring_reader *reader = open_reader(make(state));
    uint64_t seen = take_from(reader, 0);
    for (int i = 0; i < FIRST; i++)
        assert_true(put(0, RING_CONTROL) && (i % 2 || put(1, RING_BULK)));
    assert_false(put(0, RING_CONTROL));
    grow(0, RING_CONTROL, 0); /* full, and nothing of it was read */
    for (int i = 0; i < SECOND; i++)
        assert_true(put(0, RING_CONTROL));
    assert_false(put(0, RING_CONTROL));
    seen = take_from(reader, seen);
    assert_int_equal(seen, serial);
    assert_int_equal(ring_reader_publish(reader, NULL), 0);
    for (int round = 0; round < 5; round++) { /* the part is used again and again */
        for (int i = 0; i < SECOND - round; i++)
            assert_true(put(0, RING_CONTROL) && (i % 8 || put(1, RING_BULK)));
        seen = take_from(reader, seen);
        assert_int_equal(ring_reader_publish(reader, NULL), 0);
    }
    assert_int_equal(seen, serial);
    assert_int_equal(ring_reader_lost(reader, RING_CONTROL), 2);
    ring_reader_close(reader);
}

/* A collector that was killed in the middle of the first part; the next knows what is stored. */
static void a_position_in_an_older_part_is_found_again(void **state)
{
    const char *path = make(state);
    for (int i = 0; i < FIRST; i++)
        put(0, RING_BULK);
    grow(0, RING_BULK, 0);
    for (int i = 0; i < 10; i++)
        put(0, RING_BULK);
    grow(0, RING_BULK, 1);
    put(0, RING_BULK);
    struct ring_reader *reader = open_reader(path);
    assert_int_equal(ring_reader_look(reader, 1, true, NULL), 0);
    const struct segment_position stored = {.ring = {[RING_BULK] = 5}};
    ring_reader_seek(reader, 0, &stored);
    assert_int_equal(take_from(reader, 5), serial);
    ring_reader_close(reader);
}

int main(void)
{
#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(rings_that_grew_are_read_in_order),
        WITH_SCRATCH(a_position_in_an_older_part_is_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
