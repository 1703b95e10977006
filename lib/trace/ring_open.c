/* ring_open.c: opens and maps a ring file, and checks all that its header claims. */
#include "lib/trace/ring_reader_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fault_guard.h"

static bool is_capacity(uint32_t records)
{
    return records > 0 && records <= 1u << 24 && (records & (records - 1)) == 0;
}

/* The header's name of the file of shared memory, if there is one. Returns false if it is no such
 * name. */
static bool take_words_name(struct ring_reader *reader, const char *words)
{
    static const char prefix[] = "ddpcheck-";
    char name[sizeof reader->file->words], path[sizeof RING_WORDS_DIRECTORY + sizeof name];
    memcpy(name, words, sizeof name);
    if (!name[0])
        return true;
    if (!memchr(name, 0, sizeof name) || strncmp(name, prefix, sizeof prefix - 1) ||
        strchr(name, '/'))
        return false;
    snprintf(path, sizeof path, RING_WORDS_DIRECTORY "%s", name);
    free(reader->words);
    reader->words = strdup(path);
    return reader->words != NULL;
}

static int check_versions(const struct ring_reader *reader, const struct ring_file *file,
                          struct error *err)
{
    if (memcmp(file->magic, RING_MAGIC, sizeof file->magic) != 0)
        return error_set(err, "%s is not a ring file: it does not begin with " RING_MAGIC,
                         reader->path);
    if (file->version == RING_VERSION && file->record_version == RECORD_VERSION &&
        file->record_bytes == RECORD_BYTES)
        return 0;
    bool is_older = file->version < RING_VERSION || file->record_version < RECORD_VERSION;
    return error_set(err,
                     "ring file %s has version %u.%u, this ddpcheck reads %d.%d%s; use "
                     "libddpcheck.so and ddpcheck of one version, and record again",
                     reader->path, file->version, file->record_version, RING_VERSION,
                     RECORD_VERSION, is_older ? ": it was recorded by a pre-release" : "");
}

static int check_sizes(struct ring_reader *reader, const struct ring_file *file, struct error *err)
{
    reader->newest_records = file->newest_records;
    reader->members_max = file->members;
    reader->header_bytes = file->file_header_bytes;
    if (!is_capacity(file->control_records) || !is_capacity(file->bulk_records) ||
        reader->header_bytes < sizeof(struct ring_file) || reader->header_bytes > reader->mapped ||
        reader->header_bytes % RING_PAGE ||
        file->segment_bytes <
            ring_segment_bytes(file->control_records, file->bulk_records, file->newest_records) ||
        (reader->newest_records && !is_capacity(reader->newest_records)) ||
        file->segment_bytes > UINT64_C(1) << 33 || file->segment_bytes % RING_PAGE)
        return error_set(err, "ring file %s is damaged: its header gives impossible sizes",
                         reader->path);
    return 0;
}

/* The tables of the header: payload hashes and members. */
static int check_tables(struct ring_reader *reader, const struct ring_file *file, struct error *err)
{
    reader->hashes.entries = file->hash_entries;
    if (reader->hashes.entries >
        (reader->header_bytes - sizeof(struct ring_file)) / sizeof(struct hash_entry))
        return error_set(err,
                         "ring file %s is damaged: its header has no room for %u payload hashes",
                         reader->path, reader->hashes.entries);
    uint64_t hash_bytes = reader->hashes.entries * sizeof(struct hash_entry);
    if (reader->members_max >
        (reader->header_bytes - sizeof(struct ring_file) - hash_bytes) / sizeof(struct ring_member))
        return error_set(err, "ring file %s is damaged: its header has no room for %u members",
                         reader->path, reader->members_max);
    return 0;
}

static void copy_process(struct ring_reader *reader, const struct ring_file *file)
{
    struct process_info *process = &reader->process;
    *process = file->process;
    process->boot_id[sizeof process->boot_id - 1] = process->host[sizeof process->host - 1] = 0;
    process->launcher[sizeof process->launcher - 1] = process->job[sizeof process->job - 1] = 0;
    process->program[sizeof process->program - 1] = process->command[sizeof process->command - 1] =
        0;
}

/* All of it in a copy, which stays as it was checked. */
static int check_header(struct ring_reader *reader, struct error *err)
{
    struct ring_file copy, *file = &copy;
    bool is_ready = atomic_load_explicit(&reader->file->ready, memory_order_acquire);
    memcpy((void *)file, reader->file, offsetof(struct ring_file, slot));
    if (!is_ready) {
        static const char nothing[sizeof file->magic];
        if (memcmp(file->magic, nothing, sizeof nothing) == 0 ||
            memcmp(file->magic, RING_MAGIC, sizeof file->magic) == 0)
            return RING_READER_NOT_READY;
    }
    if (check_versions(reader, file, err))
        return -1;
    if (check_sizes(reader, file, err) || check_tables(reader, file, err))
        return -1;
    if (!take_words_name(reader, file->words))
        return error_set(err, "ring file %s is damaged: its header has an impossible file name",
                         reader->path);
    reader->pid_namespace = file->pid_namespace;
    reader->locked = file->locked == 1;
    copy_process(reader, file);
    return RING_READER_OPEN;
}

/* What this process lacks may be there later; a file that can't be read is another matter. */
static int refuse(const struct ring_reader *reader, const char *what, int number, struct error *err)
{
    error_set(err, "can't %s ring file %s: %s", what, reader->path, strerror(number));
    return number == EMFILE || number == ENFILE || number == ENOMEM ? RING_READER_LATER : -1;
}

/* Maps as much as there is; the file grows as threads come. Returns 0, or what refuse() does. */
static int map(struct ring_reader *reader, uint64_t bytes, struct error *err)
{
    void *at = reader->file ? mremap(reader->file, reader->mapped, bytes, MREMAP_MAYMOVE)
                            : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, reader->fd, 0);
    if (at == MAP_FAILED)
        return refuse(reader, "map", errno, err);
    reader->file = at;
    reader->mapped = bytes;
    return 0;
}

/* The file of shared memory that the header names. As the ring file it has to be our own. */
static int open_words(struct ring_reader *reader, uint64_t bytes)
{
    struct stat status;
    int fd = open(reader->words, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
        status.st_uid == geteuid() && status.st_size >= (off_t)bytes)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Maps it over the slots of `header`, whose place they take, and once more as a whole. */
static int overlay_words(struct ring_reader *reader, struct error *err)
{
    uint64_t bytes = ring_words_bytes(reader->hashes.entries);
    if (!reader->words)
        return RING_READER_OPEN;
    int fd = open_words(reader, bytes);
    if (fd < 0)
        return RING_READER_OPEN; /* ring_reader_words_missing() */
    void *whole = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *slots = whole == MAP_FAILED
                      ? MAP_FAILED
                      : mmap((void *)reader->header->slot, sizeof reader->header->slot, PROT_READ,
                             MAP_SHARED | MAP_FIXED, fd, 0);
    int number = errno;
    close(fd);
    if (whole != MAP_FAILED)
        reader->shared = whole;
    return slots == MAP_FAILED ? refuse(reader, "map", number, err) : RING_READER_OPEN;
}

static int open_file(struct ring_reader *reader, struct error *err)
{
    struct stat status;
    reader->fd = open(reader->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (reader->fd < 0 || fstat(reader->fd, &status) < 0)
        return refuse(reader, "open", errno, err);
    if (!S_ISREG(status.st_mode))
        return error_set(err, "%s is not a ring file: it is no regular file", reader->path);
    if (status.st_nlink > 1 || status.st_uid != geteuid())
        return error_set(err, "%s is not a ring file: it has another owner or another name",
                         reader->path);
    reader->device = status.st_dev;
    reader->inode = status.st_ino;
    if (status.st_size == 0)
        return RING_READER_NOT_READY;
    if ((uint64_t)status.st_size < sizeof(struct ring_file))
        return error_set(err, "ring file %s was cut off: %lld bytes, its header alone has %zu",
                         reader->path, (long long)status.st_size, sizeof(struct ring_file));
    int mapped = map(reader, (uint64_t)status.st_size, err);
    if (mapped)
        return mapped;
    void *header = mmap(NULL, sizeof *reader->header, PROT_READ, MAP_SHARED, reader->fd, 0);
    if (header == MAP_FAILED)
        return refuse(reader, "map", errno, err);
    reader->header = header;
    int checked = ring_reader_guard(reader, check_header, err);
    return checked == RING_READER_OPEN ? overlay_words(reader, err) : checked;
}

/* The size of the file, which has grown. Returns 1, 0 if it can't be found out now, or -1 with err.
 */
static int find_size(struct ring_reader *reader, uint64_t *bytes, struct error *err)
{
    struct stat status;
    int fd = reader->fd >= 0 ? reader->fd
                             : open(reader->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool known = fd >= 0 && fstat(fd, &status) == 0;
    int number = errno;
    if (fd >= 0 && fd != reader->fd)
        close(fd);
    if (!known)
        return refuse(reader, "read", number, err) == RING_READER_LATER ? 0 : -1;
    if (status.st_dev != reader->device || status.st_ino != reader->inode)
        return error_set(err, "ring file %s was replaced by another", reader->path);
    *bytes = (uint64_t)status.st_size;
    return 1;
}

int ring_reader_grow(struct ring_reader *reader, uint64_t needed, struct error *err)
{
    uint64_t bytes = needed;
    int known = needed > reader->mapped ? find_size(reader, &bytes, err) : 1;
    if (known <= 0)
        return known;
    if (bytes < needed)
        return error_set(err, "ring file %s was cut off: %" PRIu64 " bytes, %" PRIu64 " expected",
                         reader->path, bytes, needed);
    int mapped = needed > reader->mapped ? map(reader, bytes, err) : 0;
    if (mapped == RING_READER_LATER)
        return 0;
    return mapped ? -1 : 1;
}

int ring_reader_open(struct ring_reader **result, const char *path, struct error *err)
{
    *result = NULL;
    struct ring_reader *reader = calloc(1, sizeof *reader);
    if (!reader || !(reader->path = strdup(path))) {
        free(reader);
        return error_memory(err, "can't read ring file %s", path);
    }
    fault_guard_install();
    int opened = open_file(reader, err);
    if (opened == RING_READER_OPEN && reader->hashes.entries) {
        reader->hashes.hash = calloc(reader->hashes.entries, sizeof *reader->hashes.hash);
        reader->hashes.reported = calloc(reader->hashes.entries, sizeof *reader->hashes.reported);
        if (!reader->hashes.hash || !reader->hashes.reported)
            opened = error_memory(err, "can't read ring file %s", path);
    }
    if (opened == RING_READER_OPEN && reader->members_max &&
        !(reader->member = calloc(reader->members_max, sizeof *reader->member)))
        opened = error_memory(err, "can't read ring file %s", path);
    if (opened == RING_READER_OPEN)
        *result = reader;
    else
        ring_reader_close(reader);
    return opened;
}

void ring_reader_close(struct ring_reader *reader)
{
    if (!reader)
        return;
    if (reader->file)
        munmap(reader->file, reader->mapped);
    if (reader->header)
        munmap((void *)reader->header, sizeof *reader->header);
    if (reader->shared)
        munmap(reader->shared, ring_words_bytes(reader->hashes.entries));
    free(reader->words);
    if (reader->fd >= 0)
        close(reader->fd);
    for (unsigned i = 0; i < reader->segments; i++)
        free(reader->segment[i].newest.copy);
    free(reader->segment);
    free(reader->heap);
    free(reader->member);
    free(reader->hashes.hash);
    free(reader->hashes.reported);
    free(reader->path);
    free(reader);
}
