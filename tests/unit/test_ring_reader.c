/* The collector's side of a ring file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/trace/ring_reader.h"
#include "tests/unit/ring_file.h"

enum { CONTROL = 16, BULK = 32, THREADS = 4, NEWEST = 8, MEMBERS = 4 };

static struct ring_file *file;
static uint64_t file_bytes;

static struct ring_segment *segment(uint32_t index)
{
    return ring_file_segment(file, index);
}

static struct ring_file *make(const char *path, uint32_t segments)
{
    const struct ring_shape shape = {THREADS, CONTROL, BULK, NEWEST};
    const struct process_info info = process_named("one", 1, 5000);
    file = ring_file_make(path, &info, &shape, &file_bytes);
    for (uint32_t i = 1; i < segments; i++)
        ring_file_add_segment(file, i);
    return file;
}

static int put(uint32_t thread, int kind, uint64_t serial)
{
    struct record record = {.serial = serial, .api = API_cudaMalloc, .thread = thread};
    struct ring_end end = ring_file_end(file, thread, kind);
    return ring_append(&end, &record);
}

/* As the shim does with a control record. */
static int put_control(uint32_t thread, uint64_t serial, int can_be_spared)
{
    struct record record = {.serial = serial, .api = API_ncclAllReduce, .thread = thread};
    struct ring_end end = ring_file_end(file, thread, RING_CONTROL);
    if (ring_append_below(&end, ring_control_limit(&end, can_be_spared), &record))
        return 1;
    ring_append_newest(segment(thread), ring_newest(segment(thread)), NEWEST, &record);
    return 0;
}

static struct ring_reader *open_reader(const char *path)
{
    struct ring_reader *reader;
    struct error err = {""};
    if (ring_reader_open(&reader, path, &err) != RING_READER_OPEN)
        fail_msg("%s", err.text);
    return reader;
}

/* A file with payload hashes behind the header. */
enum { HASHES = 32 };
static struct ring_file *make_with_hashes(const char *path)
{
    make(path, 1);
    munmap(file, file_bytes);
    int fd = open(path, O_RDWR);
    file_bytes = sizeof *file + RING_PAGE + THREADS * ring_segment_bytes(CONTROL, BULK, NEWEST);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)file_bytes), 0);
    file = mmap(NULL, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(file, MAP_FAILED);
    close(fd);
    file->file_header_bytes = sizeof *file + RING_PAGE;
    file->hash_entries = HASHES;
    ring_file_add_segment(file, 0);
    return file;
}

/* What the shim, and then the GPU, do. */
static void take_entry(int index, uint64_t ticket)
{
    struct hash_entry *entry = &ring_hashes(file)[index];
    assert_int_equal(entry->taken, 0);
    file->hash_tickets = ticket;
    entry->number = 10 * ticket;
    entry->what = HASH_RECV_AFTER;
    entry->taken = ticket;
}
static void finish_entry(int index, uint64_t hash)
{
    ring_hashes(file)[index].found.hash = hash;
    ring_hashes(file)[index].found.done = ring_hashes(file)[index].taken;
}

static void finished_hashes_are_seen_once_and_given_back(void **state)
{
    make_with_hashes(scratch_path(state, "hash.ring"));
    _Static_assert(HASHES * sizeof(struct hash_entry) <= RING_PAGE, "they fit the page");
    struct ring_reader *reader = open_reader(scratch_path(state, "hash.ring"));
    assert_int_equal(ring_reader_look(reader, 1, true, NULL), 0);
    assert_int_equal(ring_reader_hashes(reader), 0);
    take_entry(0, 1);
    take_entry(5, 2);
    finish_entry(5, 55);
    assert_int_equal(ring_reader_look(reader, 1, true, NULL), 0);
    assert_int_equal(ring_reader_hashes(reader), 1); /* entry 0's kernel still runs */
    assert_int_equal(ring_reader_hash(reader, 0)->hash, 55);
    assert_int_equal(ring_reader_hash(reader, 0)->number, 20);
    assert_int_equal(ring_reader_hash(reader, 0)->what, HASH_RECV_AFTER);
    assert_int_equal(ring_reader_look(reader, 1, true, NULL), 0);
    assert_int_equal(ring_reader_hashes(reader), 1); /* not reported yet, so it is there again */
    ring_reader_hash_reported(reader, 0);
    finish_entry(0, 11);
    assert_int_equal(ring_reader_look(reader, 1, true, NULL), 0);
    assert_int_equal(ring_reader_hashes(reader), 1);
    assert_int_equal(ring_reader_hash(reader, 0)->hash, 11);
    assert_int_equal(ring_hashes(file)[5].taken, 2); /* reported, but not stored */
    assert_int_equal(ring_reader_publish(reader, NULL), 0);
    assert_int_equal(ring_hashes(file)[5].taken, 0);
    assert_int_equal(ring_hashes(file)[0].taken, 1);
    take_entry(5, 3); /* the old result is not taken for the new one's */
    assert_int_equal(ring_reader_look(reader, 1, true, NULL), 0);
    assert_int_equal(ring_reader_hashes(reader), 1);
    ring_reader_close(reader);
    reader = open_reader(
        scratch_path(state, "hash.ring")); /* killed before it stored: the next one sees it again */
    file->hash_lost = 7;
    assert_int_equal(ring_reader_look(reader, 1, true, NULL), 0);
    assert_int_equal(ring_reader_hashes(reader), 1);
    assert_int_equal(ring_reader_hashes_lost(reader), 7);
    ring_reader_close(reader);
    file->hash_entries = HASHES + 1;
    struct error err = {""};
    assert_int_equal(ring_reader_open(&reader, scratch_path(state, "hash.ring"), &err), -1);
    assert_non_null(strstr(err.text, "no room"));
}

static void records_of_all_rings_come_in_the_order_of_serials(void **state)
{
    make(scratch_path(state, "1-1.ring"), 2);
    struct ring_reader *reader = open_reader(scratch_path(state, "1-1.ring"));
    uint64_t seed = 9, serial = 0, next = 1;
    uint32_t threads = 2;
    for (int round = 0; round < 500; round++) {
        for (; round == 100 && threads < THREADS; threads++)
            ring_file_add_segment(file, threads);
        for (uint64_t n = random_word(&seed) % 12; n > 0; n--)
            assert_int_equal(put((uint32_t)(random_word(&seed) % threads),
                                 (int)(random_word(&seed) % 2), ++serial),
                             1);
        assert_int_equal(ring_reader_look(reader, 1, true, NULL), 0);
        struct record records[5];
        for (int got; (got = ring_reader_take(reader, records, 5, NULL)) > 0;)
            for (int i = 0; i < got; i++)
                assert_int_equal(records[i].serial, next++);
        assert_true(ring_reader_drained(reader));
        assert_int_equal(next, serial + 1);
        assert_int_equal(ring_reader_publish(reader, NULL), 0);
    }
    assert_string_equal(ring_reader_process(reader)->host, "one");
    ring_reader_close(reader);
}

static void a_missing_serial_is_waited_for_a_little(void **state)
{
    make(scratch_path(state, "1-1.ring"), 2);
    struct ring_reader *reader = open_reader(scratch_path(state, "1-1.ring"));
    struct record records[8];
    put(0, RING_CONTROL, 1);
    put(0, RING_CONTROL, 3); /* 2 is being written by the other thread */
    assert_int_equal(ring_reader_look(reader, 1000000, true, NULL), 0);
    assert_int_equal(ring_reader_take(reader, records, 8, NULL), 1);
    assert_false(ring_reader_drained(reader));
    put(1, RING_BULK, 2);
    assert_int_equal(ring_reader_look(reader, 2000000, true, NULL), 0);
    assert_int_equal(ring_reader_take(reader, records, 8, NULL), 2);
    assert_int_equal(records[0].serial, 2);
    assert_int_equal(records[1].serial, 3);
    put(0, RING_CONTROL, 5); /* 4 never comes */
    assert_int_equal(ring_reader_look(reader, 3000000, true, NULL), 0);
    assert_int_equal(ring_reader_take(reader, records, 8, NULL), 0);
    assert_int_equal(ring_reader_look(reader, 3000000 + 50000000, true, NULL), 0);
    assert_int_equal(ring_reader_take(reader, records, 8, NULL), 1);
    put(0, RING_CONTROL, 7); /* 6 never comes, and the process is dead */
    assert_int_equal(ring_reader_look(reader, 54000000, false, NULL), 0);
    assert_int_equal(ring_reader_take(reader, records, 8, NULL), 1);
    ring_reader_close(reader);
}

static void losses_are_counted_and_not_waited_for(void **state)
{
    make(scratch_path(state, "1-1.ring"), 1);
    struct ring_reader *reader = open_reader(scratch_path(state, "1-1.ring"));
    struct record records[64];
    uint64_t serial = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CONTROL + 5; i++)
            put(0, RING_CONTROL, ++serial);
        put(0, RING_BULK, ++serial);
        assert_int_equal(ring_reader_look(reader, 1, true, NULL), 0);
        assert_int_equal(ring_reader_take(reader, records, 64, NULL), CONTROL + 1);
        assert_int_equal(ring_reader_publish(reader, NULL), 0);
        assert_int_equal(ring_reader_lost(reader, RING_CONTROL), 5 * (uint64_t)(round + 1));
    }
    ring_reader_close(reader);
}

static void reading_goes_on_where_it_was_stored(void **state)
{
    make(scratch_path(state, "1-1.ring"), 1);
    for (uint64_t serial = 1; serial <= 10; serial++)
        put(0, RING_CONTROL, serial);
    struct ring_reader *reader = open_reader(scratch_path(state, "1-1.ring"));
    struct record record;
    assert_int_equal(ring_reader_look(reader, 1, true, NULL), 0);
    const struct segment_position stored = {.ring = {[RING_CONTROL] = 7}};
    ring_reader_seek(reader, 0, &stored); /* stored, but the tail was never moved */
    assert_int_equal(ring_reader_look(reader, 1, true, NULL), 0);
    assert_int_equal(ring_reader_take(reader, &record, 1, NULL), 1);
    assert_int_equal(record.serial, 8);
    assert_int_equal(ring_reader_position(reader, 0).ring[RING_CONTROL], 8);
    ring_reader_close(reader);
}

static void damage_is_an_error(void **state)
{
    const char *path = scratch_path(state, "1-1.ring");
    struct ring_reader *reader;
    struct record record;
    struct error err;
    make(path, 1);
    file->ready = 0;
    assert_int_equal(ring_reader_open(&reader, path, &err), RING_READER_NOT_READY);
    file->ready = 1;
    file->segment_bytes = 64;
    assert_int_equal(ring_reader_open(&reader, path, &err), -1);
    make(path, 1);
    file->record_version = 9;
    assert_int_equal(ring_reader_open(&reader, path, &err), -1);
    assert_non_null(strstr(err.text, "version"));
    make(path, 1);
    reader = open_reader(path);
    file->first_segment = file_bytes;
    assert_int_equal(ring_reader_look(reader, 1, true, &err), -1);
    ring_reader_close(reader);
    make(path, 1);
    reader = open_reader(path);
    segment(0)->ring[RING_BULK].head = 1000;
    assert_int_equal(ring_reader_look(reader, 1, true, &err), -1);
    ring_reader_close(reader);
    make(path, 1);
    put(0, RING_CONTROL, 1);
    put(0, RING_CONTROL, 0); /* no serial: noise */
    reader = open_reader(path);
    assert_int_equal(ring_reader_look(reader, 1, true, &err), 0);
    struct record two[2];
    assert_int_equal(ring_reader_take(reader, two, 2, &err), 1); /* what is good is given */
    assert_int_equal(ring_reader_take(reader, &record, 1, &err), -1);
    ring_reader_close(reader);
}

static void a_file_cut_under_the_reader_is_an_error(void **state)
{
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    skip(); /* the fault ends the process inside TSan's memcpy; tests/collector/test_noise.py has
               the case, too */
#endif
#endif
    const char *path = scratch_path(state, "1-1.ring");
    struct record records[8];
    struct error err;
    make(path, 1);
    put(0, RING_CONTROL, 1);
    struct ring_reader *reader = open_reader(path);
    assert_int_equal(ring_reader_look(reader, 1, true, &err), 0);
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(ring_reader_take(reader, records, 8, &err), -1);
    assert_non_null(strstr(err.text, "cut off"));
    assert_int_equal(ring_reader_publish(reader, &err), -1);
    assert_int_equal(ring_reader_look(reader, 2, true, &err), -1);
    ring_reader_close(reader);
}

/* The job went on while nobody read: its beginning and its end are kept, and what is between is
 * counted. */
static void the_newest_records_are_kept(void **state)
{
    enum { WRITTEN = 100, SPARED_FROM = CONTROL - CONTROL / 4 };
    const char *path = scratch_path(state, "newest.ring");
    make(path, 1);
    for (uint64_t serial = 1; serial <= WRITTEN; serial++)
        assert_int_equal(put_control(0, serial, 1), serial <= SPARED_FROM);
    assert_true(put_control(0, WRITTEN + 1, 0)); /* there is room left for what can't be spared */
    struct ring_reader *reader = open_reader(path);
    struct record records[CONTROL + NEWEST];
    struct error err = {""};
    assert_int_equal(ring_reader_look(reader, 1, true, &err), 0);
    int count = ring_reader_take(reader, records, CONTROL + NEWEST, &err);
    assert_int_equal(count, SPARED_FROM + NEWEST + 1);
    for (int i = 0; i < count; i++)
        assert_int_equal(records[i].serial, i < SPARED_FROM ? i + 1 : WRITTEN + 2 - (count - i));
    assert_int_equal(ring_reader_lost(reader, RING_CONTROL), WRITTEN - SPARED_FROM - NEWEST);
    assert_true(ring_reader_drained(reader));
    assert_int_equal(ring_reader_publish(reader, &err), 0);
    /* There is room in the ring again. */
    assert_true(put_control(0, WRITTEN + 2, 1));
    assert_int_equal(ring_reader_look(reader, 1, true, &err), 0);
    assert_int_equal(ring_reader_take(reader, records, 1, &err), 1);
    assert_int_equal(records[0].serial, WRITTEN + 2);
    ring_reader_close(reader);
}

/* A reader that ended between storing and publishing: the next goes on where the database says. */
static void newest_records_are_neither_doubled_nor_counted_twice(void **state)
{
    enum { FIRST = 40, SECOND = 30 };
    const char *path = scratch_path(state, "newest_again.ring");
    make(path, 1);
    for (uint64_t serial = 1; serial <= FIRST; serial++)
        put_control(0, serial, 1);
    struct ring_reader *reader = open_reader(path);
    struct record records[CONTROL + NEWEST];
    struct error err = {""};
    assert_int_equal(ring_reader_look(reader, 1, false, &err), 0);
    int first = ring_reader_take(reader, records, CONTROL + NEWEST, &err);
    struct segment_position stored = ring_reader_position(reader, 0);
    ring_reader_close(reader);
    assert_int_equal((uint64_t)first + stored.newest_missed, FIRST);
    for (uint64_t serial = FIRST + 1; serial <= FIRST + SECOND; serial++)
        put_control(0, serial, 1);
    reader = open_reader(path);
    assert_int_equal(ring_reader_look(reader, 1, false, &err), 0);
    ring_reader_seek(reader, 0, &stored);
    assert_int_equal(ring_reader_look(reader, 1, false, &err), 0);
    int second = ring_reader_take(reader, records, CONTROL + NEWEST, &err);
    assert_int_equal(second, NEWEST);
    assert_int_equal(records[second - 1].serial, FIRST + SECOND);
    assert_int_equal((uint64_t)(first + second) + ring_reader_lost(reader, RING_CONTROL),
                     FIRST + SECOND);
    ring_reader_close(reader);
}

static void members_are_read(void **state)
{
    const char *path = scratch_path(state, "members.ring");
    make_with_hashes(path);
    struct ring_reader *reader = open_reader(path);
    struct error err = {""};
    assert_int_equal(ring_reader_look(reader, 1, false, &err), 0);
    assert_int_equal(ring_reader_members(reader), 0);
    ring_reader_close(reader);
    file->hash_entries = 0;
    file->members = MEMBERS;
    struct ring_member *member = ring_members(file, 0);
    member[1].comm = 77;
    member[1].rank = 3;
    ring_member_issued(&member[1], 12);
    ring_member_issued(&member[1], 11);
    file->member_next = MEMBERS + 2; /* more asked for one than there is room for */
    member[1].ready = 1;
    reader = open_reader(path);
    assert_int_equal(ring_reader_look(reader, 1, false, &err), 0);
    assert_int_equal(ring_reader_members(reader), 1);
    struct ring_member_state found = ring_reader_member(reader, 0);
    assert_true(found.comm == 77 && found.rank == 3 && found.issued == 12);
    ring_reader_close(reader);
    file->members = 1u << 30;
    assert_int_equal(ring_reader_open(&reader, path, &err), -1);
    assert_non_null(strstr(err.text, "no room for"));
}

/* The GPU's words in a file of shared memory, which is removed with the ring file. */
static void words_are_read_from_shared_memory(void **state)
{
    const char *path = scratch_path(state, "words.ring");
    char place[sizeof RING_WORDS_DIRECTORY + sizeof file->words];
    struct ring_progress slots[RING_SLOTS_MAX];
    struct ring_reader *reader;
    struct error err = {""};
    make(path, 1);
    file->slots = 1;
    snprintf(file->words, sizeof file->words, "ddpcheck-test-%d.words", (int)getpid());
    snprintf(place, sizeof place, RING_WORDS_DIRECTORY "%s", file->words);
    reader = open_reader(path);
    assert_true(ring_reader_words_missing(reader));
    assert_int_equal(ring_reader_progress(reader, slots), 1);
    assert_int_equal(slots[0].done, 0);
    ring_reader_close(reader);

    int fd = open(place, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)ring_words_bytes(0)), 0);
    reader = open_reader(path);
    assert_false(ring_reader_words_missing(reader));
    assert_int_equal(pwrite(fd, &(uint64_t){7}, 8, offsetof(struct progress_slot, done)), 8);
    assert_int_equal(ring_reader_progress(reader, slots), 1);
    assert_int_equal(slots[0].done, 7);
    close(fd);
    ring_reader_remove(reader);
    ring_reader_close(reader);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(place, F_OK), -1);

    make(path, 1);
    strcpy(file->words, "ddpcheck-/../../tmp/other");
    assert_int_equal(ring_reader_open(&reader, path, &err), -1);
    assert_non_null(strstr(err.text, "is damaged"));
    memset(file->words, 'd', sizeof file->words);
    assert_int_equal(ring_reader_open(&reader, path, &err), -1);
}

static void files_of_a_pre_release_are_refused(void **state)
{
    const char *path = scratch_path(state, "1-1.ring");
    struct ring_reader *reader;
    struct error err = {""};
    make(path, 1);
    file->version = RING_VERSION - 1;
    assert_int_equal(ring_reader_open(&reader, path, &err), -1);
    assert_non_null(strstr(err.text, "recorded by a pre-release"));
    assert_non_null(strstr(err.text, "record again"));
    file->version = RING_VERSION;
    file->record_version = RECORD_VERSION - 1;
    assert_int_equal(ring_reader_open(&reader, path, &err), -1);
    assert_non_null(strstr(err.text, "recorded by a pre-release"));
}

int main(void)
{
#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(records_of_all_rings_come_in_the_order_of_serials),
        WITH_SCRATCH(finished_hashes_are_seen_once_and_given_back),
        WITH_SCRATCH(a_missing_serial_is_waited_for_a_little),
        WITH_SCRATCH(losses_are_counted_and_not_waited_for),
        WITH_SCRATCH(reading_goes_on_where_it_was_stored),
        WITH_SCRATCH(the_newest_records_are_kept),
        WITH_SCRATCH(newest_records_are_neither_doubled_nor_counted_twice),
        WITH_SCRATCH(members_are_read),
        WITH_SCRATCH(words_are_read_from_shared_memory),
        WITH_SCRATCH(files_of_a_pre_release_are_refused),
        WITH_SCRATCH(damage_is_an_error),
        WITH_SCRATCH(a_file_cut_under_the_reader_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
