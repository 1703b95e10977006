/* segment.c: lays out, creates and maps the shared memory of a communicator. */
#include "emu/nccl/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t MAGIC = UINT64_C(0x314c43434e504444); /* "DDPNCCL1" */

/* For stages and for rings each; less where shared memory is scarce (a container's 64 MB). */
static const size_t budgets[] = {1 << 20, 256 << 10, 0};
enum { LARGEST_CHUNK = 64 << 10, LARGEST_STAGE = 256 << 10 };

uint64_t segment_namespace(void)
{
    struct stat status;

    return stat("/proc/self/ns/pid", &status) ? 0 : status.st_ino;
}

int segment_id_make(struct segment_id *id)
{
    uint64_t random[2];

    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return -1;
    *id = (struct segment_id){
        .creator = getpid(), .namespace = segment_namespace(), .high = random[0], .low = random[1]};
    return 0;
}

/* Stafford's variant 13 of the 64-bit finalizer. */
static uint64_t mix_bits(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

struct segment_id segment_id_derive(struct segment_id id, uint64_t number, uint64_t what)
{
    id.high = mix_bits(mix_bits(id.high + number) + what);
    id.low = mix_bits(mix_bits(id.low ^ id.high) + what);
    return id;
}

static size_t page_up(size_t bytes)
{
    return (bytes + SEGMENT_PAGE - 1) / SEGMENT_PAGE * SEGMENT_PAGE;
}

/* A part of the budget in whole pages. */
static uint32_t share_of_budget(size_t budget, size_t parts, size_t largest)
{
    size_t bytes = budget / parts / SEGMENT_PAGE * SEGMENT_PAGE;

    if (bytes < SEGMENT_PAGE)
        return SEGMENT_PAGE;
    return (uint32_t)(bytes > largest ? largest : bytes);
}

/* Points into the mapping at `base` (or computes the length alone if it is 0). */
static size_t lay_out_segment(struct segment *segment, uintptr_t base, const struct header *header)
{
    size_t ranks = (size_t)header->ranks, offset = page_up(sizeof(*header));

    segment->header = (struct header *)base;
    segment->members = (struct segment_member *)(base + offset);
    offset = page_up(offset + ranks * sizeof(struct segment_member));
    segment->channels = (struct segment_channel *)(base + offset);
    offset = page_up(offset + ranks * ranks * sizeof(struct segment_channel));
    segment->stages = (char *)(base + offset);
    offset += ranks * STAGES * header->stage_bytes;
    segment->rings = (char *)(base + offset);
    return offset + ranks * ranks * RING_CHUNKS * header->chunk_bytes;
}

/* Gives an empty file its length and header. Memory is reserved: a full /dev/shm must be an
 * error here, not SIGBUS later. */
static int make_segment(int file, int ranks)
{
    size_t parts = (size_t)ranks;

    for (size_t i = 0; i < sizeof(budgets) / sizeof(*budgets); i++) {
        struct header header = {
            .ranks = ranks,
            .stage_bytes = share_of_budget(budgets[i], parts * STAGES, LARGEST_STAGE),
            .chunk_bytes = share_of_budget(budgets[i], parts * parts * RING_CHUNKS, LARGEST_CHUNK),
        };
        struct segment unused;
        size_t bytes = lay_out_segment(&unused, 0, &header);

        if (ftruncate(file, 0))
            return -1;
        errno = posix_fallocate(file, 0, (off_t)bytes);
        if (errno == EPERM || errno == ENOSYS) /* a seccomp filter; the length alone will do */
            errno = ftruncate(file, (off_t)bytes) ? errno : 0;
        if (!errno) {
            if (pwrite(file, &header, sizeof(header), 0) != sizeof(header) ||
                pwrite(file, &MAGIC, sizeof(MAGIC), offsetof(struct header, magic)) !=
                    sizeof(MAGIC))
                return -1;
            return 0;
        }
        if (errno != ENOSPC)
            return -1;
    }
    return -1;
}

static int map_segment_file(struct segment *segment, int file, const struct header *header)
{
    size_t bytes = lay_out_segment(segment, 0, header);
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (base == MAP_FAILED)
        return -1;
    lay_out_segment(segment, (uintptr_t)base, header);
    segment->bytes = bytes;
    return 0;
}

/* Opens the file behind the name and locks it; again, if it lost its name in between. */
static int open_locked(const char *name)
{
    for (;;) {
        struct stat status;
        int file = shm_open(name, O_RDWR | O_CREAT, 0600), failed, error;

        if (file < 0)
            return -1;
        failed = flock(file, LOCK_EX) || fstat(file, &status);
        if (!failed && status.st_nlink)
            return file;
        error = errno;
        close(file);
        errno = error;
        if (failed && error != EINTR)
            return -1;
    }
}

int segment_open(struct segment *segment, struct segment_id id, int ranks, int *lock)
{
    struct header header = {0};
    int file, error;

    snprintf(segment->name, sizeof(segment->name),
             "/" SEGMENT_PREFIX "%" PRId64 "-%" PRIx64 "-%016" PRIx64 "%016" PRIx64, id.creator,
             id.namespace, id.high, id.low);
    file = open_locked(segment->name);
    if (file < 0)
        return -1;
    if (pread(file, &header, sizeof(header), 0) != sizeof(header) || header.magic != MAGIC) {
        if (make_segment(file, ranks) ||
            pread(file, &header, sizeof(header), 0) != sizeof(header)) {
            error = errno;
            shm_unlink(segment->name);
            close(file);
            errno = error;
            return -1;
        }
    }
    if (header.ranks != ranks) {
        segment_unlock(file);
        return 1;
    }
    if (map_segment_file(segment, file, &header)) {
        error = errno;
        segment_unlock(file);
        errno = error;
        return -1;
    }
    *lock = file;
    return 0;
}

/* Closing alone would not do: the mapping keeps the file open, and with it the lock. */
void segment_unlock(int lock)
{
    flock(lock, LOCK_UN);
    close(lock);
}

void segment_unlink(const struct segment *segment)
{
    shm_unlink(segment->name);
}

void segment_close(struct segment *segment)
{
    if (segment->bytes)
        munmap(segment->header, segment->bytes);
    segment->bytes = 0;
}

char *segment_stage(const struct segment *segment, int rank, uint64_t round)
{
    return segment->stages +
           ((size_t)rank * STAGES + round % STAGES) * segment->header->stage_bytes;
}

struct segment_channel *segment_channel(const struct segment *segment, int from, int to)
{
    return &segment->channels[from * segment->header->ranks + to];
}

char *segment_chunk(const struct segment *segment, int from, int to, uint64_t number)
{
    size_t channel = (size_t)from * (size_t)segment->header->ranks + (size_t)to;

    return segment->rings +
           (channel * RING_CHUNKS + number % RING_CHUNKS) * segment->header->chunk_bytes;
}
