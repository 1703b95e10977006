/* ring_file.h: a ring file as the shim makes it, in which nothing is yet; mapped. */
#ifndef DDPCHECK_TEST_RING_FILE_H
#define DDPCHECK_TEST_RING_FILE_H

#include <fcntl.h>
#include <sys/mman.h>

#include "tests/unit/trace_files.h"

/* Records of each kind, and for how many threads there is room. */
struct ring_shape {
    uint32_t threads, control, bulk, newest;
};

static const struct ring_shape small_ring = {.threads = 1, .control = 16, .bulk = 16};

/* The segment of one of its threads; they lie one behind the other. */
static inline struct ring_segment *ring_file_segment(struct ring_file *file, uint32_t index)
{
    return (struct ring_segment *)((char *)file + file->file_header_bytes +
                                   index * file->segment_bytes);
}

/* Another thread comes; it has the index `index`. */
static inline void ring_file_add_segment(struct ring_file *file, uint32_t index)
{
    struct ring_segment *segment = ring_file_segment(file, index);
    uint64_t offset = (uint64_t)((char *)segment - (char *)file);
    const uint32_t records[RING_KINDS] = {file->control_records, file->bulk_records};
    ring_segment_begin(segment, offset, records, file->newest_records);
    if (index)
        ring_file_segment(file, index - 1)->next = offset;
    else
        file->first_segment = offset;
}

static inline struct ring_end ring_file_end(struct ring_file *file, uint32_t thread, int kind)
{
    struct ring_segment *segment = ring_file_segment(file, thread);
    return ring_end_of(&segment->ring[kind], ring_records(segment, kind),
                       kind == RING_BULK ? file->bulk_records : file->control_records);
}

static inline struct ring_file *ring_file_make(const char *path, const struct process_info *info,
                                               const struct ring_shape *shape, uint64_t *bytes)
{
    uint64_t segment = ring_segment_bytes(shape->control, shape->bulk, shape->newest);
    *bytes = sizeof(struct ring_file) + shape->threads * segment;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)*bytes), 0);
    struct ring_file *file = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(file, MAP_FAILED);
    close(fd);
    memcpy(file->magic, RING_MAGIC, 8);
    file->version = RING_VERSION;
    file->record_version = RECORD_VERSION;
    file->record_bytes = RECORD_BYTES;
    file->file_header_bytes = sizeof *file;
    file->control_records = shape->control;
    file->bulk_records = shape->bulk;
    file->newest_records = shape->newest;
    file->segment_bytes = segment;
    file->process = *info;
    ring_file_add_segment(file, 0);
    file->ready = 1;
    return file;
}

#endif
