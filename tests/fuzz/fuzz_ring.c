/* fuzz_ring.c: what a program's wild pointer can write into a ring file while the collector reads
 * it. A seed makes a file of random shape. Its producer goes on as the shim does; random bytes of
 * the file change between and within the reader's passes, and readers come and go. Each pass has to
 * end, and an error has to name the file; the sanitizers' builds see reads beyond its buffers.
 *
 *     fuzz_ring [FIRST-LAST]     seeds; the same seed does the same
 *
 * The first word that a seed changes is that of its number in the file's headers, so consecutive
 * seeds change each of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/trace/ring_reader.h"
#include "tests/unit/ring_file.h"

enum {
    THREADS_MAX = 4,
    SEGMENTS = 8, /* room for as many; behind the threads' own lie the parts of rings that grew */
    PASSES = 16,
    TAKEN = 256,
    TAKES_MAX = 100000 /* more than the file has room for: a pass that does not end */
};

struct producer {
    struct ring_file *file;
    uint64_t bytes, serial, room; /* where the next part of a ring begins */
    uint32_t threads, hashes, members, newest;
    /* The producer's own: it believes nothing in the file. */
    struct ring_segment *segment[THREADS_MAX];
    struct ring_end end[THREADS_MAX][RING_KINDS];
    struct newest_slot *slot[THREADS_MAX];
    uint32_t parts[THREADS_MAX][RING_KINDS];
};

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    return random_word(&random_state) % below;
}

static void producer_begin(struct producer *producer, const char *path)
{
    const struct process_info info = process_named("one", 1, 5000);
    const struct ring_shape shape = {.threads = SEGMENTS,
                                     .control = 1U << draw(6),
                                     .bulk = 1U << draw(6),
                                     .newest = 1U << draw(5)};
    *producer = (struct producer){.threads = 1 + (uint32_t)draw(THREADS_MAX),
                                  .hashes = (uint32_t)draw(8),
                                  .members = (uint32_t)draw(16),
                                  .newest = shape.newest};
    producer->file = ring_file_make(path, &info, &shape, &producer->bytes);
    struct ring_file *file = producer->file;
    file->hash_entries = producer->hashes;
    file->members = producer->members;
    atomic_store(&file->member_next, producer->members);
    file->file_header_bytes = (uint32_t)ring_pages(sizeof *file +
                                                   producer->hashes * sizeof(struct hash_entry) +
                                                   producer->members * sizeof(struct ring_member));
    file->slots = (uint32_t)draw(8);
    for (uint32_t i = 0; i < producer->members; i++)
        ring_members(file, producer->hashes)[i] =
            (struct ring_member){.issued = draw(100), .comm = 1 + draw(3), .ready = 1};
    for (uint32_t i = 0; i < producer->hashes; i++)
        ring_hashes(file)[i] = (struct hash_entry){.taken = i + 1, .found.done = draw(2) * (i + 1)};
    for (uint32_t thread = 0; thread < producer->threads; thread++) {
        ring_file_add_segment(file, thread);
        for (int kind = 0; kind < RING_KINDS; kind++)
            producer->end[thread][kind] = ring_file_end(file, thread, kind);
        producer->segment[thread] = ring_file_segment(file, thread);
        producer->slot[thread] = ring_newest(producer->segment[thread]);
        producer->parts[thread][RING_CONTROL] = producer->parts[thread][RING_BULK] = 1;
    }
    producer->room = (uint64_t)((char *)ring_file_segment(file, producer->threads) - (char *)file);
}

/* As the shim does when a ring is full, while there is room in the file. */
static void grow(struct producer *producer, uint32_t thread, int kind)
{
    struct ring_segment *segment = producer->segment[thread];
    struct ring_end *end = &producer->end[thread][kind];
    uint32_t records = 1U << draw(5), part = producer->parts[thread][kind];
    uint64_t bytes = records * (uint64_t)RECORD_BYTES;
    if (part == RING_PARTS || producer->room + bytes > producer->bytes)
        return;
    segment->part[kind][part] =
        (struct ring_part){.begin = end->head, .offset = producer->room, .records = records};
    segment->parts[kind] = producer->parts[thread][kind] = part + 1;
    end->records = (struct record *)((char *)producer->file + producer->room);
    end->capacity = records;
    end->tail = end->head;
    producer->room += bytes;
}

static void write_on(struct producer *producer)
{
    for (uint64_t left = draw(40); left; left--) {
        uint32_t thread = (uint32_t)draw(producer->threads);
        int kind = (int)draw(RING_KINDS);
        struct record record = random_record(&random_state);
        record.serial = ++producer->serial;
        if (draw(8) == 0)
            ring_append_newest(producer->segment[thread], producer->slot[thread], producer->newest,
                               &record);
        else if (!ring_append(&producer->end[thread][kind], &record) && draw(2))
            grow(producer, thread, kind);
    }
    atomic_store(&producer->file->serial, producer->serial);
}

/* The n-th word of what the reader takes numbers from: the file's header but for the slots, the
 * tables behind it, and the segments' headers. */
static uint64_t header_word(const struct producer *producer, uint64_t n)
{
    const uint64_t header = offsetof(struct ring_file, slot) + sizeof producer->file->slot[0],
                   tables = producer->hashes * sizeof(struct hash_entry) +
                            producer->members * sizeof(struct ring_member),
                   segment = offsetof(struct ring_segment, part) +
                             sizeof(struct ring_part[RING_KINDS][RING_PARTS]);
    uint64_t at = n * sizeof(uint64_t) % (header + tables + producer->threads * segment);
    if (at < header)
        return at;
    at -= header;
    if (at < tables)
        return sizeof *producer->file + at;
    at -= tables;
    return (uint64_t)((char *)producer->segment[at / segment] - (char *)producer->file) +
           at % segment;
}

static uint64_t draw_value(const struct producer *producer, uint64_t was)
{
    switch (draw(6)) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return was ^ UINT64_C(1) << draw(64);
    case 3:
        return was + draw(64) - 32;
    case 4:
        return draw(2 * producer->bytes); /* an offset, or a little too large for one */
    default:
        return random_word(&random_state);
    }
}

static void change(struct producer *producer, uint64_t at)
{
    static const uint64_t widths[] = {1, 2, 4, 8, 8, 8};
    uint64_t width = widths[draw(sizeof widths / sizeof *widths)], word;
    char *place = (char *)producer->file + at;
    memcpy(&word, place, sizeof word);
    word = draw_value(producer, word);
    memcpy(place, &word, width);
}

static void change_some(struct producer *producer)
{
    for (uint64_t left = draw(4); left; left--) {
        bool is_header = draw(4) != 0;
        uint64_t words = producer->bytes / sizeof(uint64_t);
        change(producer,
               is_header ? header_word(producer, draw(words)) : draw(words) * sizeof(uint64_t));
    }
}

/* One pass as the collector makes it, with changes within it. Returns false once the reader has
 * said that the file is damaged. */
static bool pass(struct producer *producer, struct ring_reader *reader, struct error *err)
{
    struct record record[TAKEN];
    struct ring_progress slot[RING_SLOTS_MAX];
    int got, takes = 0, room = 1 + (int)draw(TAKEN);
    if (ring_reader_look(reader, 1, draw(2), err) < 0)
        return false;
    while ((got = ring_reader_take(reader, record, room, err)) > 0) {
        assert_true(got <= room && takes++ < TAKES_MAX);
        if (draw(4) == 0)
            change_some(producer);
    }
    for (unsigned i = 0; i < ring_reader_hashes(reader); i++) {
        (void)ring_reader_hash(reader, i);
        ring_reader_hash_reported(reader, i);
    }
    for (unsigned i = 0; i < ring_reader_members(reader); i++)
        (void)ring_reader_member(reader, i);
    for (unsigned i = 0; i < ring_reader_segments(reader); i++)
        (void)ring_reader_position(reader, i);
    assert_true(ring_reader_progress(reader, slot) <= RING_SLOTS_MAX);
    return got == 0 && ring_reader_publish(reader, err) == 0;
}

/* A new reader, as after a collector that was killed: NULL once the file is not read any more. */
static struct ring_reader *open_reader(const char *path)
{
    struct ring_reader *reader;
    struct error err = {""};
    int opened = ring_reader_open(&reader, path, &err);
    assert_true(opened != RING_READER_LATER);
    assert_true(opened >= 0 || strstr(err.text, path));
    return opened == RING_READER_OPEN ? reader : NULL;
}

static void fuzz(const char *path, uint64_t seed)
{
    struct producer producer;
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    producer_begin(&producer, path);
    write_on(&producer);
    struct ring_reader *reader = open_reader(path);
    assert_non_null(reader);
    for (int i = 0; i < PASSES && reader; i++) {
        struct error err = {""};
        bool is_good = pass(&producer, reader, &err);
        assert_true(is_good || strstr(err.text, path));
        write_on(&producer);
        if (i == 0)
            change(&producer, header_word(&producer, seed));
        else
            change_some(&producer);
        if (!is_good || draw(8) == 0) {
            ring_reader_close(reader);
            reader = open_reader(path);
        }
    }
    if (reader)
        ring_reader_close(reader);
    munmap(producer.file, producer.bytes);
}

int main(int argc, char **argv)
{
    unsigned long first = 1, last = 1000;
    void *folder;
    if (argc > 1 && sscanf(argv[1], "%lu-%lu", &first, &last) != 2)
        return 2;
    if (scratch_make(&folder))
        return 2;
    for (unsigned long seed = first; seed <= last; seed++)
        fuzz(scratch_path(&folder, "fuzz.ring"), seed);
    scratch_remove(&folder);
    printf("ok, seeds %lu to %lu\n", first, last);
    return 0;
}
