/* A process that records as libddpcheck.so does, through ring.h alone: no CUDA, no shim.
 *
 *     collector_producer RINGS JOURNAL THREADS RECORDS SEED [lossy] [exit=N] [slots] [pause=US]
 * [closed]
 *
 * Each thread appends RECORDS records whose every field follows from (SEED, thread, index), so that
 * a reader can check them bit by bit, and after each append counts it in JOURNAL (one 64-bit number
 * per thread, mapped shared): what JOURNAL counts was in the ring when the process was killed.
 * Without `lossy` a full ring is waited for. With `closed` it closes the ring file, and so loses
 * its lock, but writes on. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/trace/ring.h"

enum { CONTROL = 64, BULK = 256, THREADS_MAX = 16 };

static struct ring_file *file;
static _Atomic uint64_t *journal;
static uint64_t seed, records;
static long pause_us;
static int lossy, ring_fd;

static void die(const char *what)
{
    perror(what);
    exit(9);
}

/* splitmix64; tests/collector/tool.py has the same. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t start_ticks(void)
{
    char text[1024];
    uint64_t ticks = 0;
    FILE *stat = fopen("/proc/self/stat", "r");
    if (!stat || !fgets(text, sizeof text, stat))
        die("/proc/self/stat");
    fclose(stat);
    sscanf(strrchr(text, ')') + 1,
           " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
           &ticks);
    return ticks;
}

static struct ring_segment *segment_of(int thread)
{
    return (struct ring_segment *)((char *)file + file->file_header_bytes +
                                   (uint64_t)thread * file->segment_bytes);
}

static void make_segments(int threads)
{
    const uint32_t capacities[RING_KINDS] = {CONTROL, BULK};
    for (int i = 0; i < threads; i++) {
        uint64_t offset = (uint64_t)((char *)segment_of(i) - (char *)file);
        ring_segment_begin(segment_of(i), offset, capacities, 0);
        atomic_store(i ? &segment_of(i - 1)->next : &file->first_segment, offset);
    }
}

static void make_file(const char *rings, int threads)
{
    char path[4096];
    uint64_t ticks = start_ticks();
    snprintf(path, sizeof path, "%s/%d-%" PRIu64 RING_SUFFIX, rings, (int)getpid(), ticks);
    uint64_t bytes = sizeof *file + (uint64_t)threads * ring_segment_bytes(CONTROL, BULK, 0);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
        die(path);
    file = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED)
        die(path);
    memcpy(file->magic, RING_MAGIC, sizeof file->magic);
    file->version = RING_VERSION;
    file->record_version = RECORD_VERSION;
    file->record_bytes = RECORD_BYTES;
    file->file_header_bytes = sizeof *file;
    file->control_records = CONTROL;
    file->bulk_records = BULK;
    file->segment_bytes = ring_segment_bytes(CONTROL, BULK, 0);
    file->process = (struct process_info){.pid = getpid(),
                                          .rank = (int)(seed % 1000),
                                          .local_rank = -1,
                                          .world_size = -1,
                                          .uid = getuid(),
                                          .start_ticks = ticks,
                                          .realtime_ns = clock_ns(CLOCK_REALTIME),
                                          .monotonic_ns = clock_ns(CLOCK_MONOTONIC)};
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    struct stat namespace;
    file->locked = fcntl(fd, F_SETLK, &lock) == 0;
    file->pid_namespace = stat("/proc/self/ns/pid", &namespace) == 0 ? namespace.st_ino : 0;
    ring_fd = fd;
    strcpy(file->process.boot_id, "test");
    strcpy(file->process.host, "testhost");
    strcpy(file->process.program, "collector_producer");
    make_segments(threads);
    atomic_store(&file->ready, 1);
}

static void open_journal(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, THREADS_MAX * sizeof *journal) < 0)
        die(path);
    journal = mmap(NULL, THREADS_MAX * sizeof *journal, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (journal == MAP_FAILED)
        die(path);
}

/* Plain calls that no check has an opinion about, with every bit of the rest random. */
static struct record make_record(uint64_t thread, uint64_t index)
{
    uint64_t state = mix(mix(seed) + (thread << 40) + index);
    struct record record = {.time_ns = clock_ns(CLOCK_MONOTONIC),
                            .api = API_cudaEventQuery,
                            .phase = RECORD_POINT,
                            .flags = 0,
                            .thread = (uint32_t)mix(state + 1),
                            .result = (int32_t)mix(state + 2),
                            .device = (int16_t)mix(state + 3),
                            .stack = mix(state + 4),
                            .stream = mix(state + 5)};
    for (int i = 2; i < 10; i++)
        record.word[i] = mix(state + 10 + (uint64_t)i);
    record.word[0] = thread;
    record.word[1] = index;
    return record;
}

static void *produce(void *argument)
{
    uint64_t thread = (uint64_t)(uintptr_t)argument;
    struct ring_segment *segment = segment_of((int)thread);
    struct ring_end end[RING_KINDS] = {
        ring_end_of(&segment->ring[RING_CONTROL], ring_records(segment, RING_CONTROL), CONTROL),
        ring_end_of(&segment->ring[RING_BULK], ring_records(segment, RING_BULK), BULK)};
    atomic_store(&segment->thread, (uint32_t)gettid());
    atomic_store(&segment->state, SEGMENT_ACTIVE);
    for (uint64_t index = 0; index < records; index++) {
        int kind = index % 3 ? RING_BULK : RING_CONTROL;
        struct ring *ring = &segment->ring[kind];
        uint32_t capacity = kind == RING_BULK ? BULK : CONTROL;
        while (!lossy && atomic_load(&ring->head) - atomic_load(&ring->tail) >= capacity)
            usleep(200);
        struct record record = make_record(thread, index);
        record.serial = atomic_fetch_add(&file->serial, 1) + 1;
        ring_append(&end[kind], &record);
        atomic_store(&journal[thread], index + 1);
        if (pause_us && index % 16 == 0)
            usleep((useconds_t)pause_us);
    }
    atomic_store(&segment->state, SEGMENT_ENDED);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: collector_producer RINGS JOURNAL THREADS RECORDS SEED [lossy] "
                        "[exit=N] [slots] [pause=US] [closed]\n");
        return 9;
    }
    int threads = atoi(argv[3]), status = 0, slots = 0, closed = 0;
    records = strtoull(argv[4], NULL, 10);
    seed = strtoull(argv[5], NULL, 10);
    for (int i = 6; i < argc; i++) {
        lossy |= !strcmp(argv[i], "lossy");
        slots |= !strcmp(argv[i], "slots");
        closed |= !strcmp(argv[i], "closed");
        sscanf(argv[i], "exit=%d", &status);
        sscanf(argv[i], "pause=%ld", &pause_us);
    }
    open_journal(argv[2]);
    make_file(argv[1], threads);
    if (slots) {
        atomic_store(&file->slot[0].started, 7);
        atomic_store(&file->slot[0].done, 5);
        atomic_store(&file->slots, 1);
    }
    if (closed)
        close(ring_fd);
    pthread_t thread[THREADS_MAX];
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, produce, (void *)(uintptr_t)i))
            die("pthread_create");
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    return status;
}
