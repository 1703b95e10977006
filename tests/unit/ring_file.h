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
    file->segments = 1;
    file->ready = 1;
    return file;
}

#endif
