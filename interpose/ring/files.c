/* files.c: creates this process's ring file and gives out its segments. */
#include "interpose/ring/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "interpose/ring/budget.h"
#include "interpose/ring/process.h"
#include "interpose/ring/words.h"
#include "interpose/shim/shim.h"
#include "lib/trace/unrecorded_mark.h"

enum {
    CONTROL_MIN = 256,
    ZEROS_BYTES = 1 << 15,
    SHARE =
        32, /* a segment takes at most this part of the budget: several ranks, several threads */
    SHARE_PLENTY = 256 /* and if it is larger than usual, this part */
};

static struct {
    int fd; /* the program may have closed it: use descriptor() */
    dev_t device;
    ino_t inode;
    char rings[PATH_MAX], path[PATH_MAX]; /* the stack of the first NCCL call may be small */
    _Atomic(struct ring_segment *) segment[RING_SEGMENTS_MAX];
    _Atomic uint32_t
        growing; /* lock of the file's length; held only while a thread gets a segment */
    _Atomic uint32_t segments_ended;
    char zeros[ZEROS_BYTES]; /* never written */
} files;

static uint32_t hash_entries(void)
{
    return shim.hashing ? RING_HASHES : 0;
}

static uint64_t header_bytes(void)
{
    uint64_t bytes = sizeof(struct ring_file) + hash_entries() * sizeof(struct hash_entry) +
                     RING_MEMBERS * sizeof(struct ring_member);
    return (bytes + RING_PAGE - 1) / RING_PAGE * RING_PAGE;
}

/* The same without fallocate: zeros from the file's end to `end`. */
static int write_zeros(int fd, uint64_t end)
{
    struct stat status;
    if (fstat(fd, &status))
        return errno;
    for (uint64_t at = (uint64_t)status.st_size; at < end;) {
        uint64_t left = end - at;
        ssize_t written =
            pwrite(fd, files.zeros, left < ZEROS_BYTES ? left : ZEROS_BYTES, (off_t)at);
        if (written > 0)
            at += (uint64_t)written;
        else if (written == 0 || errno != EINTR)
            return written ? errno : ENOSPC;
    }
    return 0;
}

/* A seccomp filter, or a kernel below one, refuses the call; the disk would say ENOSPC. */
static bool is_call_refused(int error)
{
    return error == EPERM || error == EACCES || error == ENOSYS || error == EOPNOTSUPP;
}

/* A limit on the size of files (ulimit -f) is checked first: to exceed it raises SIGXFSZ. */
int files_reserve(int fd, uint64_t offset, uint64_t bytes)
{
    struct rlimit limit;
    int error;
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
        offset + bytes > limit.rlim_cur)
        return EFBIG;
    do {
        error = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    } while (error == EINTR);
    return is_call_refused(error) ? write_zeros(fd, offset + bytes) : error;
}

struct capacities {
    uint32_t control, bulk, newest;
};

static uint64_t segment_bytes_of(const struct capacities *capacities)
{
    return ring_segment_bytes(capacities->control, capacities->bulk, capacities->newest);
}

/* Capacities by the budget: halved down to the minimum. What remains of the budget may be less than
 * the first segment, without which nothing of the process is recorded: it may take half of what is
 * free. Returns false if not even that fits. */
static bool choose_capacities(struct capacities *capacities)
{
    struct budget budget;
    budget_read(files.rings, &budget);
    *capacities = (struct capacities){RING_RECORDS_MAX, RING_RECORDS_MAX, RING_NEWEST_RECORDS};
    while (capacities->control > RING_CONTROL_RECORDS &&
           segment_bytes_of(capacities) > budget.total / SHARE_PLENTY) {
        capacities->control /= 2;
        capacities->bulk /= 2;
    }
    while (capacities->control > CONTROL_MIN &&
           segment_bytes_of(capacities) > budget.total / SHARE) {
        capacities->control /= 2;
        capacities->bulk /= 2;
        capacities->newest /= 2;
    }
    uint64_t bytes = header_bytes() + segment_bytes_of(capacities);
    return bytes <= budget.left || bytes <= budget.free / 2;
}

/* The first one was in the budget when the file was made. */
static bool is_segment_in_budget(uint32_t index)
{
    struct budget budget;
    if (!index)
        return true;
    budget_read(files.rings, &budget);
    return shim.file->segment_bytes <= budget.left;
}

/* The name is free except where this process was another program before an exec. */
static int open_new_file(const char *rings, char *path, uint32_t bytes)
{
    uint64_t ticks = process_start_ticks();
    for (int i = 0; i < RECORDED_PROGRAMS; i++) {
        char suffix[16] = "";
        if (i)
            snprintf(suffix, sizeof suffix, "-%d", i + 1);
        int length = snprintf(path, bytes, "%s/%d-%llu%s" RING_SUFFIX, rings, (int)getpid(),
                              (unsigned long long)ticks, suffix);
        if (length < 0 || (uint32_t)length >= bytes) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0)
            fchmod(fd, 0600); /* whatever the umask */
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Moves a descriptor up, where few programs expect none: one that has closed its standard streams
 * writes what it prints to the lowest descriptors, one that closes all closes those it can count.
 */
static int move_up(int fd)
{
    static const int lowest[] = {512, 64, STDERR_FILENO + 1};
    int moved = -1;
    for (size_t i = 0; i < sizeof lowest / sizeof *lowest && moved < 0; i++)
        moved = fcntl(fd, F_DUPFD_CLOEXEC, lowest[i]);
    if (moved < 0 && fd > STDERR_FILENO)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return moved;
}

static bool is_ring_file(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_dev == files.device && status.st_ino == files.inode;
}

/* Returns true if the lock is held (see struct ring_file). */
static bool lock_file(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    return fcntl(fd, F_SETLK, &lock) == 0;
}

/* The ring file's descriptor, opened again if the program has closed it. Returns -1 if it can't be
 * opened any more. Locked by lock_length(). */
static int descriptor(void)
{
    if (is_ring_file(files.fd))
        return files.fd;
    int fd = open(files.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0)
        fd = move_up(fd);
    if (fd < 0)
        return -1;
    if (!is_ring_file(fd)) {
        close(fd);
        return -1;
    }
    lock_file(fd);
    return files.fd = fd;
}

static struct ring_segment *map_segment(int fd, uint32_t index)
{
    uint64_t bytes = shim.file->segment_bytes;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                        (off_t)ring_segment_offset(shim.file, index));
    return memory == MAP_FAILED ? NULL : memory;
}

/* The file with its header filled in but for `ready`, or NULL with errno set. */
static struct ring_file *create_ring_file(int fd)
{
    struct capacities capacities;
    if (!choose_capacities(&capacities)) {
        errno = ENOSPC;
        return NULL;
    }
    int error = files_reserve(fd, 0, header_bytes());
    if (error) {
        errno = error;
        return NULL;
    }
    struct ring_file *file = mmap(NULL, header_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED)
        return NULL;
    memcpy(file->magic, RING_MAGIC, sizeof file->magic);
    file->version = RING_VERSION;
    file->record_version = RECORD_VERSION;
    file->record_bytes = RECORD_BYTES;
    file->file_header_bytes = (uint32_t)header_bytes();
    file->hash_entries = hash_entries();
    file->control_records = capacities.control;
    file->bulk_records = capacities.bulk;
    file->newest_records = capacities.newest;
    file->members = RING_MEMBERS;
    file->segment_bytes = segment_bytes_of(&capacities);
    process_describe(&file->process);
    file->pid_namespace = process_pid_namespace();
    if (!files_are_in_memory())
        words_place(file, files.path);
    return file;
}

bool files_start(void)
{
    struct stat status;
    if (!directory_find(shim.directory, sizeof shim.directory, files.rings, sizeof files.rings))
        return false;
    int fd = open_new_file(files.rings, files.path, sizeof files.path);
    if (fd >= 0)
        fd = move_up(fd);
    if (fd < 0 || fstat(fd, &status)) {
        int error = errno;
        if (directory_mark_unrecorded(shim.directory, error))
            return false;
        problem_print(PROBLEM_DIRECTORY, "can't create a ring file in %s: %s; nothing is recorded",
                      files.rings, strerror(error));
        return false;
    }
    struct ring_file *file = create_ring_file(fd);
    if (!file) {
        int error = errno;
        if (!directory_mark_unrecorded(shim.directory, error))
            problem_print(PROBLEM_DIRECTORY,
                          "can't reserve a ring file in %s: %s; nothing is recorded%s", files.rings,
                          strerror(error),
                          error == ENOSPC || error == EDQUOT ? " (free some space there)" : "");
        close(fd);
        unlink(files.path);
        return false;
    }
    shim.file = file;
    files.fd = fd;
    files.device = status.st_dev;
    files.inode = status.st_ino;
    file->locked = lock_file(fd);
    atomic_store_explicit(&file->ready, 1, memory_order_release);
    return true;
}

const char *files_rings(void)
{
    return files.rings;
}

bool files_are_in_memory(void)
{
    struct statfs system;
    return statfs(files.rings, &system) == 0 &&
           (system.f_type == TMPFS_MAGIC || system.f_type == HUGETLBFS_MAGIC);
}

static void lock_length(void)
{
    while (atomic_exchange_explicit(&files.growing, 1, memory_order_acquire))
        sched_yield();
}

static struct ring_segment *add_segment(uint32_t thread)
{
    struct ring_segment *segment = NULL;
    lock_length();
    uint32_t index = atomic_load_explicit(&shim.file->segments, memory_order_relaxed);
    int fd = index < RING_SEGMENTS_MAX && is_segment_in_budget(index) ? descriptor() : -1;
    if (fd >= 0 &&
        !files_reserve(fd, ring_segment_offset(shim.file, index), shim.file->segment_bytes))
        segment = map_segment(fd, index);
    if (segment) {
        atomic_store_explicit(&segment->thread, thread, memory_order_relaxed);
        atomic_store_explicit(&segment->state, SEGMENT_ACTIVE, memory_order_release);
        atomic_store_explicit(&files.segment[index], segment, memory_order_release);
        atomic_store_explicit(&shim.file->segments, index + 1, memory_order_release);
    }
    atomic_store_explicit(&files.growing, 0, memory_order_release);
    return segment;
}

struct ring_segment *files_take_segment(uint32_t thread)
{
    uint32_t count = atomic_load_explicit(&shim.file->segments, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct ring_segment *segment =
            atomic_load_explicit(&files.segment[i], memory_order_acquire);
        uint32_t state = SEGMENT_ENDED;
        if (segment &&
            atomic_compare_exchange_strong_explicit(&segment->state, &state, SEGMENT_ACTIVE,
                                                    memory_order_acq_rel, memory_order_relaxed)) {
            atomic_store_explicit(&segment->thread, thread, memory_order_relaxed);
            return segment;
        }
    }
    return add_segment(thread);
}

void files_end_segment(struct ring_segment *segment)
{
    atomic_store_explicit(&segment->state, SEGMENT_ENDED, memory_order_release);
    atomic_fetch_add_explicit(&files.segments_ended, 1, memory_order_release);
}

uint32_t files_segments_ended(void)
{
    return atomic_load_explicit(&files.segments_ended, memory_order_acquire);
}

bool files_has_thread(uint32_t thread)
{
    uint32_t count = atomic_load_explicit(&shim.file->segments, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct ring_segment *segment =
            atomic_load_explicit(&files.segment[i], memory_order_acquire);
        if (segment && atomic_load(&segment->state) == SEGMENT_ACTIVE &&
            atomic_load(&segment->thread) == thread)
            return true;
    }
    return false;
}

/* Puts memory of this process's own where the parent's file was mapped: the addresses stay, since
 * another of the parent's calls may be using them further up this stack, but the file does not
 * count as in use by this process. */
static void unshare_mapping(void *at, uint64_t bytes)
{
    mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void files_forked(void)
{
    if (shim.file) {
        uint64_t header = shim.file->file_header_bytes, segment = shim.file->segment_bytes;
        if (is_ring_file(files.fd))
            close(files.fd);
        for (int i = 0; i < RING_SEGMENTS_MAX; i++)
            if (atomic_load(&files.segment[i]))
                unshare_mapping(atomic_load(&files.segment[i]), segment);
        unshare_mapping(shim.file, header);
    }
    memset((void *)&files, 0, sizeof files);
}
