/* source.c: opens the databases, follows their changes and runs queries over them. */
#include "tui/source.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <stdlib.h>
#include <time.h>

#include "lib/live/live.h"

enum { BUSY_MS = 200 }; /* after that the screen says that the database is locked */

static const uint64_t silence_ns = 5000000000; /* a collector says something every second */

static uint64_t realtime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* --- which files --- */

/* A file that was written anew is another one by its inode; in any order of files the sum is the
 * same. */
static uint64_t file_hash(int directory, const char *name)
{
    struct stat status;
    if (fstatat(directory, name, &status, 0) < 0)
        return 0;
    uint64_t hash = ((uint64_t)status.st_ino * 0x9e3779b97f4a7c15u) ^ (uint64_t)status.st_dev;
    return hash ^ hash >> 29;
}

static uint64_t files_of(const struct source *source)
{
    uint64_t sum = 0;
    for (int i = 0; i < source->count; i++) {
        DIR *directory = opendir(source->paths[i]);
        if (!directory)
            sum += file_hash(AT_FDCWD, source->paths[i]);
        for (const struct dirent *entry; directory && (entry = readdir(directory));) {
            size_t bytes = strlen(entry->d_name);
            if (bytes > 3 && !strcmp(entry->d_name + bytes - 3, ".db"))
                sum += file_hash(dirfd(directory), entry->d_name);
        }
        if (directory)
            closedir(directory);
    }
    return sum;
}

static int is_stopped(void *stop)
{
    return atomic_load_explicit((const atomic_bool *)stop, memory_order_relaxed);
}

static void prepare(const struct source *source)
{
    for (int i = 0; i < trace_database_count(source->trace); i++) {
        sqlite3 *db = trace_database(source->trace, i);
        sqlite3_busy_timeout(db, BUSY_MS);
    }
    if (source->stop)
        trace_stop_on(source->trace, is_stopped, (void *)source->stop);
}

/* Opens what the paths hold now, instead of what is open. On failure that stays. */
static int open_anew(struct source *source, uint64_t files, struct error *err)
{
    struct trace *trace;
    if (trace_open(&trace, source->paths, source->count, err) < 0)
        return -1;
    if (trace_database_count(trace) > SOURCE_DATABASES_MAX) {
        trace_close(trace);
        return error_set(err, "more than %d databases at a time: name fewer of them",
                         SOURCE_DATABASES_MAX);
    }
    trace_close(source->trace);
    source->trace = trace;
    source->files = files;
    source->opened++;
    memset(source->version, 0, sizeof source->version);
    prepare(source);
    return 0;
}

int source_open_all(struct source *source, const char *const *paths, int count, struct error *err)
{
    *source = (struct source){.paths = paths, .count = count};
    return open_anew(source, files_of(source), err);
}

void source_stop_on(struct source *source, const atomic_bool *stop)
{
    source->stop = stop;
    prepare(source);
}

/* From then on nothing else is looked for. */
static void choose_instead(struct source *source)
{
    if (!source->instead || source->chosen ||
        !source->instead(source->context, &source->chosen, &source->title))
        return;
    source->paths = &source->chosen;
    source->count = 1;
}

/* Whether others were opened. A database that was begun a moment ago can't be read yet: the next
 * look tries again. */
static bool look_at_files(struct source *source)
{
    struct error err = {""};
    choose_instead(source);
    uint64_t files = files_of(source);
    source->warning.text[0] = '\0';
    if (files == source->files)
        return false;
    if (files && open_anew(source, files, &err) == 0)
        return true;
    if (files)
        error_set(&source->warning, "not shown: %s", err.text);
    else
        error_set(&source->warning, "%s was removed; this is what it held",
                  trace_database_path(source->trace, 0));
    return false;
}

bool source_is_imported(const struct source *source)
{
    struct cursor row = cursor_new(source->trace, "SELECT count(*) FROM imported", NULL, 0);
    int64_t imported = 0;
    while (cursor_next(&row, NULL) == 1)
        imported += cursor_number(&row, 0);
    return imported > 0;
}

uint64_t source_bytes(const struct source *source)
{
    uint64_t bytes = 0;
    for (int i = 0; i < trace_database_count(source->trace); i++) {
        struct stat status;
        if (stat(trace_database_path(source->trace, i), &status) == 0)
            bytes += (uint64_t)status.st_size;
    }
    return bytes;
}

void source_forget_stood(struct source *source)
{
    if (source->stood)
        live_free(source->stood);
    free(source->stood);
    source->stood = NULL;
}

static void forget_words(struct source *source)
{
    for (int i = 0; i < source->words_count; i++)
        free(source->words[i].what);
    free(source->words);
    source->words = NULL;
    source->words_count = 0;
}

void source_close_all(struct source *source)
{
    forget_words(source);
    source_forget_stood(source);
    trace_close(source->trace);
    source->trace = NULL;
}

/* The last event of all databases. 0, or -1 with err. */
static int look_at_time(struct source *source, struct error *err)
{
    static const char sql[] = "SELECT e.time_ns + p.realtime_ns - p.monotonic_ns FROM event e JOIN "
                              "process p ON p.id = e.process "
                              "WHERE e.seq = (SELECT max(seq) FROM event)";
    struct cursor cursor = cursor_new(source->trace, sql, NULL, 0);
    uint64_t last_ns = trace_alive_ns(source->trace), now_ns = realtime_ns();
    int result;
    while ((result = cursor_next(&cursor, err)) == 1)
        if ((uint64_t)cursor_number(&cursor, 0) > last_ns)
            last_ns = (uint64_t)cursor_number(&cursor, 0);
    source->live = !trace_complete(source->trace) && last_ns + silence_ns > now_ns;
    source->now_ns = source->live ? now_ns : last_ns;
    return result;
}

int source_look(struct source *source, struct error *err)
{
    struct error before = source->warning;
    bool changed = look_at_files(source);
    if (source->trouble && !*source->warning.text)
        source->trouble(source->context, &source->warning);
    changed |= strcmp(before.text, source->warning.text) != 0;
    struct cursor cursor = cursor_new(source->trace, "PRAGMA data_version", NULL, 0);
    int result;
    while ((result = cursor_next(&cursor, err)) == 1) {
        int64_t version = cursor_number(&cursor, 0);
        changed |= version != source->version[cursor.database];
        source->version[cursor.database] = version;
    }
    if (changed)
        forget_words(source);
    if (result < 0 || (changed && trace_refresh(source->trace, err) < 0) ||
        look_at_time(source, err) < 0)
        return -1;
    return changed;
}
