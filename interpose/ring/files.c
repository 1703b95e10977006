/* files.c: creates this process's ring file and makes it longer. */
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
#include "interpose/shim/forget.h"
#include "interpose/shim/shim.h"
#include "interpose/shim/thread.h"
#include "lib/trace/unrecorded_mark.h"

enum {
    ZEROS_BYTES = 1 << 15,
    GRANT = 16 /* this part of what is left is taken before it is read again */
};

static struct {
    int fd; /* the program may have closed it: use descriptor() */
    dev_t device;
    ino_t inode;
    char rings[PATH_MAX], path[PATH_MAX];       /* the stack of the first NCCL call may be small */
    _Atomic(const struct shim_thread *) holder; /* of the lock of the file's length */
    uint64_t end, granted;   /* the file's length; what it may grow by without another look */
    char zeros[ZEROS_BYTES]; /* never written */
} files;

uint32_t files_hash_entries(void)
{
    return shim.hashing ? RING_HASHES : 0;
}

static uint64_t header_bytes(void)
{
    uint64_t bytes = sizeof(struct ring_file) + files_hash_entries() * sizeof(struct hash_entry) +
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

static uint64_t first_segment_bytes(void)
{
    return ring_segment_bytes(RING_RECORDS_FIRST, RING_RECORDS_FIRST, RING_NEWEST_FIRST);
}

/* What remains of the budget may be less than the first segment, without which nothing of the
 * process is recorded: it may take half of what is free. */
static bool has_first_room(void)
{
    struct budget budget;
    uint64_t bytes = header_bytes() + first_segment_bytes();
    budget_read(files.rings, &budget);
    return bytes <= budget.left || bytes <= budget.free / 2;
}

/* Reading what is left takes a good part of a millisecond where cgroups are deep. */
static bool take_from_budget(uint64_t bytes, enum files_request request)
{
    struct budget budget;
    if (request == FILES_FIRST) /* when the file was made */
        return true;
    if (bytes > files.granted) {
        budget_read(files.rings, &budget);
        if (bytes > (request == FILES_GROWTH ? budget.left / 2 : budget.left))
            return false;
        files.granted = budget.left / GRANT;
    }
    files.granted -= bytes < files.granted ? bytes : files.granted;
    return true;
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

/* The file with its header filled in but for `ready`, or NULL with errno set. */
static struct ring_file *create_ring_file(int fd)
{
    if (!has_first_room()) {
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
    file->hash_entries = files_hash_entries();
    file->control_records = file->bulk_records = RING_RECORDS_FIRST;
    file->newest_records = RING_NEWEST_FIRST;
    file->members = RING_MEMBERS;
    file->segment_bytes = first_segment_bytes();
    process_describe(&shim.process);
    file->process = shim.process;
    file->pid_namespace = process_pid_namespace();
    if (!files_are_in_memory())
        words_place(file);
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
    files.end = header_bytes();
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

bool files_lock(void)
{
    const struct shim_thread *nobody = NULL;
    while (!atomic_compare_exchange_weak_explicit(&files.holder, &nobody, &thread_self,
                                                  memory_order_acquire, memory_order_relaxed)) {
        if (nobody == &thread_self)
            return false;
        nobody = NULL;
        sched_yield();
    }
    return true;
}

void files_unlock(void)
{
    atomic_store_explicit(&files.holder, NULL, memory_order_release);
}

void *files_extend(uint64_t bytes, enum files_request request, uint64_t *offset)
{
    int fd = take_from_budget(bytes, request) ? descriptor() : -1;
    if (fd < 0 || files_reserve(fd, files.end, bytes))
        return NULL;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)files.end);
    if (memory == MAP_FAILED)
        return NULL;
    *offset = files.end;
    files.end += bytes;
    return memory;
}

void files_unshare(void *at, uint64_t bytes)
{
    mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void files_forked(void)
{
    if (shim.file) {
        if (is_ring_file(files.fd))
            close(files.fd);
        files_unshare(shim.file, header_bytes());
    }
    forget_state(&files, sizeof files);
}
