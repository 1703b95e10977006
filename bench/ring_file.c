/* ring_file.c: ring files as the shim makes them, of processes that are made up. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/bench.h"

/* A process runs while its ring file is locked (collector/liveness.h). */
static void lock_ring_file(int fd, const char *path)
{
    const struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_SETLK, &lock) < 0)
        bench_die("can't lock %s", path);
}

struct ring_file *bench_ring_file(const char *rings, int rank, uint32_t capacity, bool runs)
{
    struct process_info info = bench_process(rank);
    char path[PATH_MAX + 64];
    uint64_t segment = ring_segment_bytes(capacity, capacity, 0);
    snprintf(path, sizeof path, "%s/%d-%" PRIu64 RING_SUFFIX, rings, info.pid, info.start_ticks);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)(sizeof(struct ring_file) + segment)) < 0)
        bench_die("can't make %s", path);
    struct ring_file *file = mmap(NULL, sizeof *file + segment, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_POPULATE, fd, 0);
    if (file == MAP_FAILED)
        bench_die("can't map %s", path);
    if (runs)
        lock_ring_file(fd, path);
    else
        close(fd);
    memcpy(file->magic, RING_MAGIC, sizeof file->magic);
    file->version = RING_VERSION;
    file->record_version = RECORD_VERSION;
    file->record_bytes = RECORD_BYTES;
    file->file_header_bytes = sizeof *file;
    file->control_records = file->bulk_records = capacity;
    file->segment_bytes = segment;
    file->process = info;
    const uint32_t capacities[RING_KINDS] = {capacity, capacity};
    ring_segment_begin((struct ring_segment *)((char *)file + sizeof *file), sizeof *file,
                       capacities, 0);
    atomic_store(&file->first_segment, sizeof *file);
    atomic_store(&file->ready, 1);
    return file;
}

struct ring *bench_ring(struct ring_file *file, int kind, struct record **records)
{
    struct ring_segment *segment = (struct ring_segment *)((char *)file + sizeof *file);
    *records = ring_records(segment, kind);
    return &segment->ring[kind];
}
