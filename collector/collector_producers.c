/* collector_producers.c: ring files come, are found damaged, and go; how long the threads of their
 * processes wait for a processor. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collector/collector.h"
#include "collector/host_facts.h"
#include "collector/run_delay.h"
#include "collector/trace_directory.h"
#include "lib/base/array.h"

enum {
    UNREADY_SECONDS = 1,    /* a producer that is just beginning has the file open */
    DELAYS_COST_SHARE = 200 /* of a processor: readings of run delays that cost more become rarer */
};
static const uint64_t delays_interval_ns = 500000000;

void collector_set_aside(const char *path, const struct error *why)
{
    char bad[PATH_MAX];
    if (snprintf(bad, sizeof bad, "%s.bad", path) < (int)sizeof bad && rename(path, bad) == 0)
        fprintf(stderr, "ddpcheck: %s; set aside as %s, the other processes go on\n", why->text,
                bad);
    else
        fprintf(stderr, "ddpcheck: %s; the other processes go on\n", why->text);
}

static bool has_ring_suffix(const char *name)
{
    size_t length = strlen(name), suffix = strlen(RING_SUFFIX);
    return length > suffix && strcmp(name + length - suffix, RING_SUFFIX) == 0;
}

bool collector_has_newcomers(const char *trace_directory)
{
    char rings[PATH_MAX];
    struct stat status;
    bool found = false;
    DIR *directory = directory_read_rings(trace_directory, rings) ? opendir(rings) : NULL;
    if (!directory)
        return false;
    for (struct dirent *entry; !found && (entry = readdir(directory));)
        found = has_ring_suffix(entry->d_name) &&
                fstatat(dirfd(directory), entry->d_name, &status, 0) == 0 &&
                status.st_size >= (off_t)sizeof(struct ring_file);
    closedir(directory);
    return found;
}

static bool is_admitted(const struct collector *collector, const char *path)
{
    for (int i = 0; i < collector->producer_count; i++)
        if (strcmp(collector->producers[i]->path, path) == 0)
            return true;
    return false;
}

/* A file whose producer died before it had filled in the header holds nothing. */
static void remove_unready(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        time(NULL) - status.st_mtime > UNREADY_SECONDS && !liveness_file_in_use(fd))
        unlink(path);
    if (fd >= 0)
        close(fd);
}

/* While a dead collector's job is finished, a live process that this job doesn't know belongs to
 * the next one. */
static bool must_wait(struct collector *collector, const struct process_info *info,
                      const struct liveness *liveness)
{
    return collector->recovering && !liveness->ended &&
           store_process_find(collector->store, info, NULL) < 0;
}

static int append_producer(struct collector *collector, struct producer *producer)
{
    if (!ARRAY_ADD(collector->producers, collector->producer_count))
        return -1;
    collector->producers[collector->producer_count++] = producer;
    return 0;
}

/* It is tried again at each pass. */
static void postpone(struct collector *collector, const struct error *why)
{
    collector->ring_search.postponed++;
    if (!collector->ring_search.postponed_reported)
        fprintf(stderr, "ddpcheck: %s; it is tried again until it can be read\n", why->text);
    collector->ring_search.postponed_reported = true;
}

/* Returns 1 if the process was admitted, 0 if not (yet), or -1 with err. */
static int admit_file(struct collector *collector, const char *path, struct error *err)
{
    struct error why;
    struct ring_reader *reader;
    int opened = ring_reader_open(&reader, path, &why);
    collector->ring_search.unready |= opened == RING_READER_NOT_READY;
    if (opened == RING_READER_NOT_READY)
        remove_unready(path);
    else if (opened < 0 && access(path, F_OK) == 0)
        collector_set_aside(path, &why);
    else if (opened == RING_READER_LATER)
        postpone(collector, &why);
    if (opened != RING_READER_OPEN)
        return 0;
    struct producer *producer = calloc(1, sizeof *producer);
    if (!producer || !(producer->path = strdup(path))) {
        ring_reader_close(reader);
        free(producer);
        return error_memory(err, "can't watch %s", path);
    }
    if (ring_reader_words_missing(reader))
        fprintf(stderr,
                "ddpcheck: %s: the file in " RING_WORDS_DIRECTORY
                " that the GPU writes to can't be read here; how far the GPU got is not known\n",
                path);
    producer->liveness.pidfd = -1;
    producer->reader = reader;
    producer->progress = progress_watch_add(collector->progress, reader);
    if (!producer->progress) {
        producer_free(producer);
        return error_memory(err, "can't watch %s", path);
    }
    const struct process_info *info = ring_reader_process(reader);
    ring_reader_leave(reader, false);
    liveness_watch(&producer->liveness, reader);
    int result = 0;
    if (!must_wait(collector, info, &producer->liveness)) {
        if (!collector->store)
            result = collector_open(collector, info, err);
        if (result == 0)
            result = producer->process = collector_add_process(collector, info, err);
        if (result >= 0)
            result = append_producer(collector, producer) < 0
                         ? error_memory(err, "can't watch %s", path)
                         : 1;
        if (result == 1) /* its end is watched by now */
            host_facts_add(collector, producer->process, info);
    }
    if (result == 1)
        producer->end_reported = collector->processes.ended[producer->process];
    else
        producer_free(producer);
    return result;
}

/* The directory can't be opened: with a descriptor the next pass looks again. */
static int no_rings(struct collector *collector, struct error *err)
{
    if (errno == ENOENT)
        return 0;
    error_set(err, "can't read the ring files in %s: %s", collector->rings, strerror(errno));
    if (errno != EMFILE && errno != ENFILE)
        return -1;
    postpone(collector, err);
    return 0;
}

int collector_admit(struct collector *collector, struct error *err)
{
    DIR *directory = opendir(collector->rings);
    collector->ring_search.postponed = 0;
    collector->ring_search.unready = false;
    if (!directory)
        return no_rings(collector, err);
    int admitted = 0;
    for (struct dirent *entry; admitted >= 0 && (entry = readdir(directory));) {
        char path[PATH_MAX];
        if (!has_ring_suffix(entry->d_name) ||
            snprintf(path, sizeof path, "%s/%s", collector->rings, entry->d_name) >=
                (int)sizeof path ||
            is_admitted(collector, path))
            continue;
        int result = admit_file(collector, path, err);
        admitted = result < 0 ? -1 : admitted + result;
    }
    closedir(directory);
    return admitted;
}

void collector_dismiss(struct collector *collector)
{
    int kept = 0;
    for (int i = 0; i < collector->producer_count; i++) {
        struct producer *producer = collector->producers[i];
        bool is_drained = !producer->reader || ring_reader_drained(producer->reader);
        if (!producer->end_reported || !is_drained || !producer->liveness.ended) {
            collector->producers[kept++] = producer;
            continue;
        }
        collector->processes.ended[producer->process] = true;
        if (producer->reader && !collector->in_memory)
            ring_reader_remove(producer->reader); /* a damaged one was renamed and stays */
        producer_free(producer);
    }
    collector->producer_count = kept;
}

void collector_take_exit(struct collector *collector, const struct known_exit *exit)
{
    collector->ends.exit[collector->ends.exits++ % EXITS_KEPT] = *exit;
}

void collector_count_failures(struct collector *collector, const struct record *record)
{
    collector->ends.failures += record->api == API_notice_end &&
                                (record->end.how != END_EXIT || record->end.value != 0);
}

void collector_give_exits(struct collector *collector)
{
    unsigned kept = collector->ends.exits < EXITS_KEPT ? collector->ends.exits : EXITS_KEPT;
    for (int i = 0; i < collector->producer_count; i++) {
        struct liveness *liveness = &collector->producers[i]->liveness;
        for (unsigned k = 0; k < kept && liveness->ended && liveness->how == END_UNKNOWN; k++) {
            const struct known_exit *exit = &collector->ends.exit[k];
            if (liveness->pid == exit->pid && liveness->start_ticks == exit->start_ticks)
                liveness_set_end(liveness, exit->status);
        }
    }
}

static bool is_recorded_here(void *context, pid_t pid)
{
    const struct collector *collector = context;
    for (int i = 0; i < collector->producer_count; i++)
        if (collector->producers[i]->liveness.pid == pid)
            return true;
    return false;
}

static uint64_t own_processor_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void collector_read_run_delays(struct collector *collector, uint64_t now_ns)
{
    if (now_ns < collector->run_delays_due_ns)
        return;
    uint64_t begin_ns = own_processor_ns();
    for (int i = 0; i < collector->producer_count; i++) {
        struct producer *producer = collector->producers[i];
        struct record record;
        if (producer->reader && producer->liveness.pid && !producer->liveness.ended &&
            run_delay_read(&producer->run_delay, producer->liveness.pid, is_recorded_here,
                           collector, monotonic_now_ns(), &record))
            batch_add(collector->batch, producer->process, &record);
    }
    uint64_t cost_ns = DELAYS_COST_SHARE * (own_processor_ns() - begin_ns);
    collector->run_delays_due_ns = now_ns +
                                   (cost_ns > delays_interval_ns ? cost_ns : delays_interval_ns);
}
