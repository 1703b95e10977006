/* ring_reader.c: reads the records of one ring file and checks all that it reads. */
#include "lib/trace/ring_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fault_guard.h"
#include "lib/trace/ring_newest.h"

/* Sources of records: the rings, then the newest records of each segment. */
enum { RINGS_MAX = RING_SEGMENTS_MAX * RING_KINDS, SOURCES_MAX = RINGS_MAX + RING_SEGMENTS_MAX };

static const uint64_t patience_ns = 20000000; /* how long a missing serial is waited for */
static const uint64_t hashes_interval_ns =
    50000000; /* how often all hash entries are looked at, whatever is known */

struct ring_cursor {
    uint64_t position, head; /* next to take; end of what may be taken */
};

struct ring_reader {
    char *path;
    int fd;
    struct ring_file *file;
    uint64_t mapped;
    const struct ring_file *header; /* mapped once more: `file` moves when it grows */
    char *words;                    /* path of the file that has the slots and hash entries, */
    struct progress_slot *shared;   /* and its mapping; NULL: they are in the ring file */
    dev_t device;
    ino_t inode;
    struct process_info process;
    uint64_t pid_namespace;
    bool locked;
    uint32_t record_version;
    uint32_t capacity[RING_KINDS];
    uint64_t segment_bytes,
        header_bytes; /* as checked; the file's may be overwritten at any time */
    unsigned rings;
    struct ring_cursor cursor[RINGS_MAX];
    uint32_t newest_records; /* of each segment; 0: the file has none */
    struct newest_reader newest[RING_SEGMENTS_MAX];
    unsigned heap[SOURCES_MAX],
        heap_size; /* sources with records left, by the serial of the next one */
    unsigned members_max, members;
    struct ring_member_state *member; /* room for members_max */
    uint64_t lost[RING_KINDS];
    unsigned hash_entries, hashes;
    struct ring_hash *hash; /* room for hash_entries; NULL without hashing */
    uint64_t *hash_reported,
        hashes_lost; /* by entry: the ticket that was reported and is to be given back */
    uint64_t hash_tickets, hashes_seen_ns; /* at the last look at all entries, */
    bool hashes_pending; /* which found some that are not done, or not given back */
    /* Serials are dense, so what is missing is either lost, and counted, or still to come. */
    uint64_t highest, taken, excused;
    bool began, resumed, patient;
    uint64_t now_ns, waiting_for, waiting_since;
    bool held_back;
};

struct guarded_action {
    struct ring_reader *reader;
    int (*action)(struct ring_reader *, struct error *);
    struct error *err;
};

static int run_guarded(void *context)
{
    struct guarded_action *guarded = context;
    return guarded->action(guarded->reader, guarded->err);
}

static int report_cut(const struct ring_reader *reader, struct error *err)
{
    return error_set(err, "ring file %s was cut off while it was read", reader->path);
}

static int guarded(struct ring_reader *reader, int (*action)(struct ring_reader *, struct error *),
                   struct error *err)
{
    struct guarded_action guarded = {reader, action, err};
    int result = fault_guard_run(run_guarded, &guarded);
    return result == FAULT_GUARD_CUT ? report_cut(reader, err) : result;
}

static struct ring_segment *segment_of(const struct ring_reader *reader, unsigned ring)
{
    return (struct ring_segment *)((char *)reader->file + reader->header_bytes +
                                   ring / RING_KINDS * reader->segment_bytes);
}

static struct newest_slot *newest_of(const struct ring_reader *reader, unsigned segment)
{
    return (struct newest_slot *)(segment_of(reader, segment * RING_KINDS)->records +
                                  reader->capacity[RING_CONTROL] + reader->capacity[RING_BULK]);
}

static const struct record *record_at(const struct ring_reader *reader, unsigned ring,
                                      uint64_t position)
{
    unsigned kind = ring % RING_KINDS;
    return segment_of(reader, ring)->records +
           (kind == RING_BULK ? reader->capacity[RING_CONTROL] : 0) +
           (position & (reader->capacity[kind] - 1));
}

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

static int check_header(struct ring_reader *reader, struct error *err)
{
    const struct ring_file *file = reader->file;
    if (!atomic_load_explicit((_Atomic uint32_t *)&file->ready, memory_order_acquire)) {
        static const char nothing[sizeof file->magic];
        if (memcmp(file->magic, nothing, sizeof nothing) == 0 ||
            memcmp(file->magic, RING_MAGIC, sizeof file->magic) == 0)
            return RING_READER_NOT_READY;
    }
    if (memcmp(file->magic, RING_MAGIC, sizeof file->magic) != 0)
        return error_set(err, "%s is not a ring file: it does not begin with " RING_MAGIC,
                         reader->path);
    if (file->version < 1 || file->version > RING_VERSION || file->record_version < 1 ||
        file->record_version > RECORD_VERSION || file->record_bytes != RECORD_BYTES)
        return error_set(err,
                         "ring file %s has version %u.%u, this ddpcheck reads %d.%d; use "
                         "libddpcheck.so and ddpcheck of one version",
                         reader->path, file->version, file->record_version, RING_VERSION,
                         RECORD_VERSION);
    reader->record_version = file->record_version;
    reader->capacity[RING_CONTROL] = file->control_records;
    reader->capacity[RING_BULK] = file->bulk_records;
    /* What version 1 has there is not initialized in older files. */
    reader->newest_records = file->version > 1 ? file->newest_records : 0;
    reader->members_max = file->version > 1 ? file->members : 0;
    reader->segment_bytes = file->segment_bytes;
    reader->header_bytes = file->file_header_bytes;
    if (!is_capacity(reader->capacity[RING_CONTROL]) || !is_capacity(reader->capacity[RING_BULK]) ||
        reader->header_bytes < sizeof(struct ring_file) || reader->header_bytes > 1 << 24 ||
        reader->header_bytes % RING_PAGE ||
        reader->segment_bytes < ring_segment_bytes(reader->capacity[RING_CONTROL],
                                                   reader->capacity[RING_BULK],
                                                   reader->newest_records) ||
        (reader->newest_records && !is_capacity(reader->newest_records)) ||
        reader->segment_bytes > UINT64_C(1) << 33 || reader->segment_bytes % RING_PAGE)
        return error_set(err, "ring file %s is damaged: its header gives impossible sizes",
                         reader->path);
    reader->hash_entries = file->hash_entries;
    if (reader->hash_entries >
        (reader->header_bytes - sizeof(struct ring_file)) / sizeof(struct hash_entry))
        return error_set(err,
                         "ring file %s is damaged: its header has no room for %u payload hashes",
                         reader->path, reader->hash_entries);
    uint64_t hash_bytes = reader->hash_entries * sizeof(struct hash_entry);
    if (reader->members_max >
        (reader->header_bytes - sizeof(struct ring_file) - hash_bytes) / sizeof(struct ring_member))
        return error_set(err, "ring file %s is damaged: its header has no room for %u members",
                         reader->path, reader->members_max);
    if (file->version > 1 && !take_words_name(reader, file->words))
        return error_set(err, "ring file %s is damaged: its header has an impossible file name",
                         reader->path);
    reader->pid_namespace = file->pid_namespace;
    reader->locked = file->locked == 1;
    reader->process = file->process;
    struct process_info *process = &reader->process;
    process->boot_id[sizeof process->boot_id - 1] = process->host[sizeof process->host - 1] = 0;
    process->launcher[sizeof process->launcher - 1] = process->job[sizeof process->job - 1] = 0;
    process->program[sizeof process->program - 1] = process->command[sizeof process->command - 1] =
        0;
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
    uint64_t bytes = ring_words_bytes(reader->hash_entries);
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

static struct hash_entry *shared_hashes(const struct ring_reader *reader)
{
    return reader->shared ? (struct hash_entry *)(reader->shared + RING_SLOTS_MAX)
                          : ring_hashes(reader->file);
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
    int checked = guarded(reader, check_header, err);
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

int ring_reader_open(struct ring_reader **result, const char *path, struct error *err)
{
    *result = NULL;
    struct ring_reader *reader = calloc(1, sizeof *reader);
    if (!reader || !(reader->path = strdup(path))) {
        free(reader);
        return error_set(err, "can't read ring file %s: out of memory", path);
    }
    fault_guard_install();
    int opened = open_file(reader, err);
    if (opened == RING_READER_OPEN && reader->hash_entries) {
        reader->hash = calloc(reader->hash_entries, sizeof *reader->hash);
        reader->hash_reported = calloc(reader->hash_entries, sizeof *reader->hash_reported);
        if (!reader->hash || !reader->hash_reported)
            opened = error_set(err, "can't read ring file %s: out of memory", path);
    }
    if (opened == RING_READER_OPEN && reader->members_max &&
        !(reader->member = calloc(reader->members_max, sizeof *reader->member)))
        opened = error_set(err, "can't read ring file %s: out of memory", path);
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
        munmap(reader->shared, ring_words_bytes(reader->hash_entries));
    free(reader->words);
    if (reader->fd >= 0)
        close(reader->fd);
    for (unsigned i = 0; i < RING_SEGMENTS_MAX; i++)
        free(reader->newest[i].copy);
    free(reader->member);
    free(reader->hash);
    free(reader->hash_reported);
    free(reader->path);
    free(reader);
}

const struct process_info *ring_reader_process(const struct ring_reader *reader)
{
    return &reader->process;
}

bool ring_reader_words_missing(const struct ring_reader *reader)
{
    return reader->words && !reader->shared;
}

void ring_reader_remove(const struct ring_reader *reader)
{
    unlink(reader->path);
    if (reader->words)
        unlink(reader->words);
}

const char *ring_reader_path(const struct ring_reader *reader)
{
    return reader->path;
}

uint64_t ring_reader_pid_namespace(const struct ring_reader *reader)
{
    return reader->pid_namespace;
}

bool ring_reader_locked(const struct ring_reader *reader)
{
    return reader->locked;
}

int ring_reader_descriptor(const struct ring_reader *reader)
{
    return reader->fd;
}

void ring_reader_release_descriptor(struct ring_reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    reader->fd = -1;
}

static const struct record *next_of(const struct ring_reader *reader, unsigned source)
{
    if (source >= RINGS_MAX)
        return newest_next(&reader->newest[source - RINGS_MAX], reader->newest_records);
    return record_at(reader, source, reader->cursor[source].position);
}

static uint64_t serial_of(const struct ring_reader *reader, unsigned source)
{
    return next_of(reader, source)->serial;
}

/* Moves heap[at] down to its place. */
static void sift(struct ring_reader *reader, unsigned at)
{
    for (;;) {
        unsigned least = at;
        for (unsigned child = 2 * at + 1; child <= 2 * at + 2 && child < reader->heap_size; child++)
            if (serial_of(reader, reader->heap[child]) < serial_of(reader, reader->heap[least]))
                least = child;
        if (least == at)
            return;
        unsigned ring = reader->heap[at];
        reader->heap[at] = reader->heap[least];
        reader->heap[least] = ring;
        at = least;
    }
}

/* Only a file that has grown is asked for its size: one that was cut off shows when it is read. */
static int look_at_segments(struct ring_reader *reader, struct error *err)
{
    unsigned segments = atomic_load_explicit(&reader->file->segments, memory_order_acquire);
    uint64_t needed = reader->header_bytes + segments * reader->segment_bytes;
    if (segments > RING_SEGMENTS_MAX || segments * RING_KINDS < reader->rings)
        return error_set(err, "ring file %s is damaged: it claims %u threads", reader->path,
                         segments);
    uint64_t bytes = needed;
    int known = needed > reader->mapped ? find_size(reader, &bytes, err) : 1;
    if (known <= 0)
        return known;
    if (bytes < needed)
        return error_set(err, "ring file %s was cut off: %" PRIu64 " bytes, %" PRIu64 " expected",
                         reader->path, bytes, needed);
    int mapped = needed > reader->mapped ? map(reader, bytes, err) : 0;
    if (mapped)
        return mapped == RING_READER_LATER ? 0 : mapped;
    while (reader->rings < segments * RING_KINDS) {
        unsigned ring = reader->rings++;
        uint64_t tail = atomic_load_explicit(
            &segment_of(reader, ring)->ring[ring % RING_KINDS].tail, memory_order_relaxed);
        reader->cursor[ring] = (struct ring_cursor){tail, tail};
        if (reader->newest_records && ring % RING_KINDS == 0)
            newest_begin(&reader->newest[ring / RING_KINDS], segment_of(reader, ring));
    }
    return 0;
}

/* Nothing was asked for since the last look and all was given back. A ticket is drawn a moment
 * before its entry is taken, so that holds only for a while. */
static bool no_hash_is_new(const struct ring_reader *reader, uint64_t tickets)
{
    return tickets == reader->hash_tickets && !reader->hashes_pending && reader->patient &&
           reader->now_ns - reader->hashes_seen_ns < hashes_interval_ns;
}

/* Before the heads: the record of what was hashed is seen by this look. */
static void look_at_hashes(struct ring_reader *reader)
{
    struct hash_entry *entries = shared_hashes(reader);
    uint64_t tickets = atomic_load_explicit(&reader->file->hash_tickets, memory_order_relaxed);
    reader->hashes = 0;
    if (!reader->hash_entries || no_hash_is_new(reader, tickets))
        return;
    reader->hash_tickets = tickets;
    reader->hashes_seen_ns = reader->now_ns;
    reader->hashes_pending = false;
    for (unsigned i = 0; i < reader->hash_entries; i++) {
        struct hash_entry *entry = &entries[i];
        uint64_t ticket = atomic_load_explicit(&entry->taken, memory_order_acquire);
        if (!ticket)
            continue;
        reader->hashes_pending = true;
        if (ticket == reader->hash_reported[i] ||
            atomic_load_explicit(&entry->found.done, memory_order_acquire) != ticket)
            continue;
        reader->hash[reader->hashes++] = (struct ring_hash){
            .comm = entry->comm,
            .number = entry->number,
            .bytes = entry->bytes,
            .serial = entry->serial,
            .name = entry->name,
            .hash = entry->found.hash,
            .nans = entry->found.nans,
            .infs = entry->found.infs,
            .flags = entry->found.flags,
            .what = entry->what,
            .expects = entry->expects,
            .api = entry->api,
            .rank = entry->rank,
            .entry = i,
            .ticket = ticket,
        };
    }
    reader->hashes_lost = atomic_load_explicit(&reader->file->hash_lost, memory_order_relaxed);
}

/* Before the heads as well: what a member has issued is in a ring seen by this look, or lost. */
static void look_at_members(struct ring_reader *reader)
{
    unsigned given = atomic_load_explicit(&reader->file->member_next, memory_order_acquire);
    struct ring_member *members = ring_members(reader->file);
    reader->members = 0;
    if (!reader->members_max)
        return;
    for (unsigned i = 0; i < given && i < reader->members_max; i++)
        if (atomic_load_explicit(&members[i].ready, memory_order_acquire))
            reader->member[reader->members++] = (struct ring_member_state){
                .comm = members[i].comm,
                .rank = members[i].rank,
                .issued = atomic_load_explicit(&members[i].issued, memory_order_acquire),
            };
}

static int look_at_newest(struct ring_reader *reader, struct error *err)
{
    for (unsigned i = 0; reader->newest_records && i < reader->rings / RING_KINDS; i++) {
        struct newest_reader *newest = &reader->newest[i];
        int waits = newest_look(newest, segment_of(reader, i * RING_KINDS), newest_of(reader, i),
                                reader->newest_records);
        if (waits < 0)
            return error_set(err,
                             waits == -1 ? "ring file %s is damaged: the newest records of a "
                                           "thread were read further than they are written"
                                         : "can't read ring file %s: out of memory",
                             reader->path);
        reader->lost[RING_CONTROL] += newest->missed;
        if (waits)
            reader->heap[reader->heap_size++] = RINGS_MAX + i;
    }
    return 0;
}

static int look_at_rings(struct ring_reader *reader, struct error *err)
{
    reader->lost[RING_CONTROL] =
        atomic_load_explicit(&reader->file->lost_threads, memory_order_relaxed);
    reader->lost[RING_BULK] = 0;
    reader->heap_size = 0;
    for (unsigned ring = 0; ring < reader->rings; ring++) {
        struct ring_cursor *cursor = &reader->cursor[ring];
        unsigned kind = ring % RING_KINDS;
        struct ring *from = &segment_of(reader, ring)->ring[kind];
        reader->lost[kind] += atomic_load_explicit(&from->lost, memory_order_relaxed);
        cursor->head = atomic_load_explicit(&from->head, memory_order_acquire);
        if (cursor->head - cursor->position > reader->capacity[kind])
            return error_set(err,
                             "ring file %s is damaged: ring %u was read to %" PRIu64
                             " and is written to %" PRIu64 " with room for %u records",
                             reader->path, ring, cursor->position, cursor->head,
                             reader->capacity[kind]);
        if (cursor->head != cursor->position)
            reader->heap[reader->heap_size++] = ring;
    }
    if (look_at_newest(reader, err) < 0)
        return -1;
    for (unsigned at = reader->heap_size / 2; at-- > 0;)
        sift(reader, at);
    return 0;
}

static int look(struct ring_reader *reader, struct error *err)
{
    if (look_at_segments(reader, err) < 0)
        return -1;
    look_at_hashes(reader);
    look_at_members(reader);
    return look_at_rings(reader, err);
}

int ring_reader_look(struct ring_reader *reader, uint64_t now_ns, bool patient, struct error *err)
{
    reader->now_ns = now_ns;
    reader->patient = patient;
    reader->held_back = false;
    reader->heap_size = 0;
    return guarded(reader, look, err);
}

/* Whether to wait for a record that comes before `serial` and was not seen yet. */
static bool hold_back(struct ring_reader *reader, uint64_t serial)
{
    if (!reader->began) {
        reader->began = true;
        reader->highest = reader->taken = reader->resumed ? serial - 1 : 0;
    }
    if (serial <= reader->highest + 1)
        return false;
    uint64_t missing = serial - 1 - reader->taken;
    uint64_t lost = reader->lost[RING_CONTROL] + reader->lost[RING_BULK] + reader->excused;
    if (missing <= lost || serial - 1 < reader->taken)
        return false;
    if (reader->waiting_for != serial) {
        reader->waiting_for = serial;
        reader->waiting_since = reader->now_ns;
    }
    if (reader->patient && reader->now_ns - reader->waiting_since < patience_ns)
        return true;
    reader->excused += missing - lost;
    return false;
}

struct taking {
    struct ring_reader *reader;
    struct record *records;
    int max, count;
    struct error *err;
};

/* The first source's next record was taken. */
static void pass_taken(struct ring_reader *reader)
{
    unsigned source = reader->heap[0];
    bool more;
    if (source >= RINGS_MAX)
        more = newest_advance(&reader->newest[source - RINGS_MAX], reader->newest_records);
    else
        more = ++reader->cursor[source].position != reader->cursor[source].head;
    if (!more)
        reader->heap[0] = reader->heap[--reader->heap_size];
    sift(reader, 0);
}

static int take_records(void *context)
{
    struct taking *taking = context;
    struct ring_reader *reader = taking->reader;
    while (taking->count < taking->max && reader->heap_size > 0) {
        unsigned source = reader->heap[0];
        struct record *record = &taking->records[taking->count];
        *record = *next_of(reader, source);
        if (reader->record_version == 1)
            record_from_version_1(record);
        if (record->serial == 0 || record->api == API_NONE || record->api >= API_COUNT ||
            record->phase > RECORD_LEAVE)
            return error_set(taking->err,
                             "ring file %s is damaged: noise in ring %u at position %" PRIu64,
                             reader->path, source,
                             source < RINGS_MAX ? reader->cursor[source].position
                                                : reader->newest[source - RINGS_MAX].position);
        if (hold_back(reader, record->serial)) {
            reader->held_back = true;
            return 0;
        }
        reader->taken++;
        if (record->serial > reader->highest)
            reader->highest = record->serial;
        taking->count++;
        pass_taken(reader);
    }
    return 0;
}

int ring_reader_take(struct ring_reader *reader, struct record *records, int max, struct error *err)
{
    struct taking taking = {reader, records, max, 0, err};
    int result = fault_guard_run(take_records, &taking);
    if (result == FAULT_GUARD_CUT)
        result = report_cut(reader, err);
    return taking.count > 0 ? taking.count : result;
}

bool ring_reader_drained(const struct ring_reader *reader)
{
    return reader->heap_size == 0;
}

unsigned ring_reader_rings(const struct ring_reader *reader)
{
    return reader->rings;
}

uint64_t ring_reader_position(const struct ring_reader *reader, unsigned ring)
{
    return reader->cursor[ring].position;
}

void ring_reader_seek(struct ring_reader *reader, unsigned ring, uint64_t position)
{
    struct ring_cursor *cursor = &reader->cursor[ring];
    if (position > 0)
        reader->resumed = true;
    if (position > cursor->position)
        cursor->position = cursor->head = position;
}

unsigned ring_reader_newest_segments(const struct ring_reader *reader)
{
    return reader->newest_records ? reader->rings / RING_KINDS : 0;
}

struct newest_position ring_reader_newest_position(const struct ring_reader *reader,
                                                   unsigned segment)
{
    const struct newest_reader *newest = &reader->newest[segment];
    return (struct newest_position){newest->position, newest->missed};
}

/* What was found overwritten by the first look is found again by the next. */
void ring_reader_newest_seek(struct ring_reader *reader, unsigned segment,
                             struct newest_position stored)
{
    struct newest_reader *newest = &reader->newest[segment];
    if (stored.position == 0)
        return;
    reader->resumed = true;
    newest->position = newest->copied = stored.position;
    newest->missed = stored.missed;
}

unsigned ring_reader_members(const struct ring_reader *reader)
{
    return reader->members;
}

struct ring_member_state ring_reader_member(const struct ring_reader *reader, unsigned index)
{
    return reader->member[index];
}

static void publish_newest(struct ring_reader *reader)
{
    for (unsigned i = 0; i < ring_reader_newest_segments(reader); i++) {
        struct ring_segment *segment = segment_of(reader, i * RING_KINDS);
        const struct newest_reader *newest = &reader->newest[i];
        atomic_store_explicit(&segment->newest_tail, newest->position, memory_order_relaxed);
        atomic_store_explicit(&segment->newest_missed, newest->missed, memory_order_relaxed);
    }
}

static void publish_hashes(struct ring_reader *reader)
{
    struct hash_entry *entries = shared_hashes(reader);
    for (unsigned i = 0; i < reader->hash_entries; i++) {
        uint64_t reported = reader->hash_reported[i];
        if (reported)
            atomic_compare_exchange_strong_explicit(&entries[i].taken, &reported, 0,
                                                    memory_order_release, memory_order_relaxed);
        reader->hash_reported[i] = 0;
    }
}

static int publish(struct ring_reader *reader, struct error *err)
{
    (void)err;
    publish_hashes(reader);
    publish_newest(reader);
    for (unsigned ring = 0; ring < reader->rings; ring++)
        atomic_store_explicit(&segment_of(reader, ring)->ring[ring % RING_KINDS].tail,
                              reader->cursor[ring].position, memory_order_release);
    return 0;
}

int ring_reader_publish(struct ring_reader *reader, struct error *err)
{
    return guarded(reader, publish, err);
}

uint64_t ring_reader_lost(const struct ring_reader *reader, int kind)
{
    return reader->lost[kind];
}

struct progress_reading {
    const struct ring_file *header;
    struct ring_progress *slot;
};

static int read_slot_words(void *context)
{
    const struct progress_reading *reading = context;
    const struct ring_file *header = reading->header;
    unsigned slots = atomic_load_explicit((_Atomic uint32_t *)&header->slots, memory_order_acquire);
    if (slots > RING_SLOTS_MAX)
        slots = RING_SLOTS_MAX;
    for (unsigned i = 0; i < slots; i++) {
        struct progress_slot *slot = (struct progress_slot *)&header->slot[i];
        reading->slot[i].done = atomic_load_explicit(&slot->done, memory_order_acquire);
        reading->slot[i].started = atomic_load_explicit(&slot->started, memory_order_acquire);
    }
    return (int)slots;
}

int ring_reader_progress(const struct ring_reader *reader, struct ring_progress *slot)
{
    struct progress_reading reading = {reader->header, slot};
    return fault_guard_run(read_slot_words, &reading);
}

unsigned ring_reader_hashes(const struct ring_reader *reader)
{
    return reader->hashes;
}

const struct ring_hash *ring_reader_hash(const struct ring_reader *reader, unsigned index)
{
    return &reader->hash[index];
}

void ring_reader_hash_reported(struct ring_reader *reader, unsigned index)
{
    reader->hash_reported[reader->hash[index].entry] = reader->hash[index].ticket;
}

uint64_t ring_reader_hashes_lost(const struct ring_reader *reader)
{
    return reader->hashes_lost;
}

/* The futex is shared: the waiter is another process. */
static int ask(struct ring_reader *reader, struct error *err)
{
    (void)err;
    atomic_fetch_add(&reader->file->stacks_wanted, 1);
    syscall(SYS_futex, &reader->file->stacks_wanted, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return 0;
}

void ring_reader_ask(struct ring_reader *reader)
{
    guarded(reader, ask, NULL); /* a file that was cut off shows at the next look */
}
