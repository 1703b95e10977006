/* tui_ras.c: polls the RAS of a running job and turns its answers into a trace for the TUI. */
#include "cmd/tui_ras.h"

#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "cmd/import_judge.h"
#include "lib/import/import.h"
#include "lib/import/ras_client.h"
#include "lib/import/ras_status.h"
#include "lib/trace/store.h"

enum {
    SNAPSHOTS_MAX = 32,
    SNAPSHOTS_LEAST = 4,
    HISTORY_MAX = 16 << 20,
    PATH_BYTES = PATH_MAX / 2,
    BUSY_MS = 5000
};

static const struct timespec slice = {.tv_nsec = 50000000};
static const uint64_t every_ns = 1000000000;

struct snapshot {
    char *text;
    size_t bytes;
    uint64_t time_ns, counts; /* counts: a hash of all that can change but time */
};

struct tui_ras {
    char address[256], folder[PATH_BYTES], database[PATH_BYTES + 16];
    struct snapshot snapshot[SNAPSHOTS_MAX];
    int snapshots;
    char *diagnostics; /* of NCCL's own, once; NULL: it has none */
    pthread_t thread;
    atomic_bool stopping;
    pthread_mutex_t lock;
    struct error trouble; /* under the lock */
};

/* --- the snapshots --- */

static int hash_counts(const char *text, size_t bytes, uint64_t *counts, struct error *err)
{
    json_error_t wrong;
    struct ras_status status;
    json_t *document = json_loadb(text, bytes, 0, &wrong);
    if (!document)
        return error_set(err, "RAS answered no JSON: byte %d: %s", wrong.position, wrong.text);
    int result = ras_status_parse(document, &status, err);
    json_decref(document);
    *counts = 1;
    for (int i = 0; !result && i < status.comms; i++) {
        *counts = hash_word(*counts, status.comm[i].hash);
        for (int k = 0; k < status.comm[i].ranks; k++) {
            const struct ras_rank *rank = &status.comm[i].rank[k];
            *counts = hash_word(hash_word(*counts, (uint64_t)rank->rank), rank->total);
            *counts = hash_word(*counts, (uint64_t)rank->missing << 3 | rank->dead << 2 |
                                             rank->unresponsive << 1 | rank->aborted);
            *counts = hash_word(*counts, (uint64_t)(uint32_t)rank->async_error << 32 |
                                             (uint32_t)rank->init_state);
        }
    }
    if (!result)
        ras_status_free(&status);
    return result;
}

static void drop_oldest(struct tui_ras *ras)
{
    free(ras->snapshot[0].text);
    memmove(ras->snapshot, ras->snapshot + 1, (size_t)--ras->snapshots * sizeof *ras->snapshot);
}

/* Of snapshots that say the same the first and the last are kept: since when it is so, and until
 * when. */
static void keep_snapshot(struct tui_ras *ras, const struct snapshot *taken)
{
    int last = ras->snapshots - 1;
    size_t bytes = taken->bytes;
    if (last >= 1 && ras->snapshot[last].counts == taken->counts &&
        ras->snapshot[last - 1].counts == taken->counts) {
        free(ras->snapshot[last].text);
        ras->snapshot[last] = *taken;
        return;
    }
    for (int i = 0; i < ras->snapshots; i++)
        bytes += ras->snapshot[i].bytes;
    while (ras->snapshots == SNAPSHOTS_MAX ||
           (bytes > HISTORY_MAX && ras->snapshots > SNAPSHOTS_LEAST)) {
        bytes -= ras->snapshot[0].bytes;
        drop_oldest(ras);
    }
    ras->snapshot[ras->snapshots++] = *taken;
}

static int write_snapshots(const struct tui_ras *ras, const char *path, struct error *err)
{
    FILE *file = fopen(path, "we");
    bool good = file;
    for (int i = 0; good && i < ras->snapshots; i++)
        good = fprintf(file, "{\"ddpcheck_time_ns\": %llu}\n",
                       (unsigned long long)ras->snapshot[i].time_ns) > 0 &&
               fwrite(ras->snapshot[i].text, 1, ras->snapshot[i].bytes, file) ==
                   ras->snapshot[i].bytes &&
               fputc('\n', file) != EOF;
    if (file && fclose(file))
        good = false;
    return good ? 0 : error_set(err, "can't write %s: %m", path);
}

static int write_diagnostics(const struct tui_ras *ras, const char *path, struct error *err)
{
    FILE *file = fopen(path, "we");
    bool good = file && fputs(ras->diagnostics, file) != EOF;
    if (file && fclose(file))
        good = false;
    return good ? 0 : error_set(err, "can't write %s: %m", path);
}

/* --- the database --- */

static void hush(void *context, const char *message)
{
    (void)context;
    (void)message;
}

/* Replaces the rows in one transaction: readers keep the file open. */
static int replace_rows(const char *database, const char *with, struct error *err)
{
    static const char *const tables[] = {
        "meta",         "process",      "event",      "string",        "finding",
        "finding_side", "member_state", "wait_state", "process_state", "imported"};
    sqlite3 *db = NULL;
    char *message = NULL, *attach = sqlite3_mprintf("ATTACH %Q AS fresh", with);
    int code = attach ? sqlite3_open_v2(database, &db, SQLITE_OPEN_READWRITE, NULL) : SQLITE_NOMEM;
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(db, BUSY_MS);
        code = sqlite3_exec(db, attach, NULL, NULL, &message);
    }
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, &message);
    for (size_t i = 0; code == SQLITE_OK && i < sizeof tables / sizeof *tables; i++) {
        char sql[160];
        snprintf(sql, sizeof sql, "DELETE FROM main.%s; INSERT INTO main.%s SELECT * FROM fresh.%s",
                 tables[i], tables[i], tables[i]);
        code = sqlite3_exec(db, sql, NULL, NULL, &message);
    }
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, "DELETE FROM main.meta WHERE key = 'ended'; COMMIT; DETACH fresh",
                            NULL, NULL, &message);
    if (code != SQLITE_OK)
        error_set(err, "can't write %s: %s", database, message ? message : sqlite3_errstr(code));
    sqlite3_free(message);
    sqlite3_free(attach);
    sqlite3_close(db);
    return code == SQLITE_OK ? 0 : -1;
}

/* An import is over; the job goes on. */
static int go_on(const char *database, struct error *err)
{
    struct store *store;
    if (store_open(&store, database, err))
        return -1;
    int failed = store_begin(store, err) || store_meta(store, "ended", NULL, err) ||
                 store_commit(store, err);
    if (store_close(store, failed ? NULL : err))
        failed = 1;
    return failed ? -1 : 0;
}

static void remove_database(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char name[PATH_MAX];
        if (snprintf(name, sizeof name, "%s%s", path, ends[i]) < (int)sizeof name)
            unlink(name);
    }
}

static int make_database(struct tui_ras *ras, struct error *err)
{
    char text[PATH_BYTES + 16], said[PATH_BYTES + 16], fresh[PATH_BYTES + 16];
    const char *paths[] = {text, said};
    int count = ras->diagnostics ? 2 : 1;
    struct import_verdict verdict;
    struct import_result result;
    const struct import_judge *judge = import_judge_new(&verdict, err);
    const struct import_options options = {.say = hush, .judge = judge};
    snprintf(said, sizeof said, "%s/diagnostics.txt", ras->folder);
    snprintf(text, sizeof text, "%s/snapshots.json", ras->folder);
    snprintf(fresh, sizeof fresh, "%s/fresh.db", ras->folder);
    int failed = !judge || write_snapshots(ras, text, err) ||
                 (ras->diagnostics && write_diagnostics(ras, said, err)) ||
                 import_files(paths, count, fresh, &options, &result, err);
    import_judge_free(judge);
    if (!failed && access(ras->database, F_OK) != 0)
        failed = go_on(fresh, err) || (rename(fresh, ras->database)
                                           ? error_set(err, "can't create %s: %m", ras->database)
                                           : 0);
    else if (!failed)
        failed = replace_rows(ras->database, fresh, err);
    remove_database(fresh);
    unlink(text);
    unlink(said);
    return failed;
}

/* --- asking --- */

static int ask_once(struct tui_ras *ras, struct error *err)
{
    struct snapshot taken = {0};
    taken.text = ras_fetch(ras->address, &ras->stopping, NULL, &taken.bytes, err);
    if (!taken.text)
        return -1;
    taken.time_ns = realtime_now_ns();
    if (hash_counts(taken.text, taken.bytes, &taken.counts, err)) {
        free(taken.text);
        return -1;
    }
    keep_snapshot(ras, &taken);
    return make_database(ras, err);
}

static void pause_until(const struct tui_ras *ras, uint64_t until_ns)
{
    while (!atomic_load(&ras->stopping) && monotonic_now_ns() < until_ns)
        nanosleep(&slice, NULL);
}

static void *ask_on(void *argument)
{
    struct tui_ras *ras = argument;
    struct error unknown = {{0}};
    size_t bytes;
    ras->diagnostics = ras_fetch_diagnostics(ras->address, &ras->stopping, &bytes, &unknown);
    while (!atomic_load(&ras->stopping)) {
        uint64_t begin_ns = monotonic_now_ns();
        struct error err = {""};
        pause_until(ras, begin_ns + every_ns);
        if (atomic_load(&ras->stopping))
            break;
        int failed = ask_once(ras, &err);
        pthread_mutex_lock(&ras->lock);
        ras->trouble.text[0] = '\0';
        if (failed)
            error_set(&ras->trouble, "%s; trying again", err.text);
        pthread_mutex_unlock(&ras->lock);
    }
    return NULL;
}

void tui_ras_trouble(void *context, struct error *trouble)
{
    struct tui_ras *ras = context;
    pthread_mutex_lock(&ras->lock);
    *trouble = ras->trouble;
    pthread_mutex_unlock(&ras->lock);
}

const char *tui_ras_database(const struct tui_ras *ras)
{
    return ras->database;
}

static int make_folder(struct tui_ras *ras, struct error *err)
{
    const char *place = getenv("TMPDIR");
    if (snprintf(ras->folder, sizeof ras->folder, "%s/ddpcheck-ras-XXXXXX",
                 place && *place ? place : "/tmp") >= (int)sizeof ras->folder)
        return error_set(err, "TMPDIR is too long");
    if (!mkdtemp(ras->folder))
        return error_set(err, "can't create a directory %s: %m: set TMPDIR to a writable directory",
                         ras->folder);
    snprintf(ras->database, sizeof ras->database, "%s/ras.db", ras->folder);
    return 0;
}

static void free_all(struct tui_ras *ras)
{
    while (ras->snapshots)
        drop_oldest(ras);
    free(ras->diagnostics);
    if (*ras->database) {
        remove_database(ras->database);
        rmdir(ras->folder);
    }
    pthread_mutex_destroy(&ras->lock);
    free(ras);
}

struct tui_ras *tui_ras_start(const char *address, double wait_s, struct error *err)
{
    struct tui_ras *ras = calloc(1, sizeof *ras);
    uint64_t until_ns = monotonic_now_ns() + (uint64_t)(wait_s * 1e9);
    if (!ras) {
        error_memory(err, "can't start");
        return NULL;
    }
    pthread_mutex_init(&ras->lock, NULL);
    atomic_init(&ras->stopping, false);
    snprintf(ras->address, sizeof ras->address, "%s", address);
    int failed = make_folder(ras, err);
    while (!failed && (failed = ask_once(ras, err)) && monotonic_now_ns() < until_ns) {
        pause_until(ras, monotonic_now_ns() + every_ns / 2);
        failed = 0;
    }
    int why = failed ? 0 : pthread_create(&ras->thread, NULL, ask_on, ras);
    if (why)
        failed = error_set(err, "can't start a thread: %s", strerror(why));
    if (!failed)
        return ras;
    free_all(ras);
    return NULL;
}

void tui_ras_stop(struct tui_ras *ras)
{
    if (!ras)
        return;
    atomic_store(&ras->stopping, true);
    pthread_join(ras->thread, NULL);
    free_all(ras);
}
