/* image.c: copies a database page by page, and finds the pages that differ from the copy before. */
#include "lib/trace/image.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE_BUSY_MS = 5000 };

/* https://www.sqlite.org/fileformat2.html: 1 a rollback journal, 2 a write-ahead log. */
enum { READ_VERSION_AT = 19, WRITE_VERSION_AT = 18, WITH_JOURNAL = 1, WITH_LOG = 2 };

struct image {
    char *path;
    sqlite3 *db;
    sqlite3_stmt *writes; /* says whether another connection has written */
    int64_t seen;         /* what it said last */
    unsigned char *bytes; /* sqlite3_malloc's */
    uint64_t *changed;    /* the version with which each page came */
    uint32_t pages;
    uint64_t version;
};

static int fail_image(const struct image *image, struct error *err)
{
    return error_set(err, "can't read %s: %s", image->path,
                     image->db ? sqlite3_errmsg(image->db) : OUT_OF_MEMORY);
}

int image_open(struct image **to, const char *path, struct error *err)
{
    struct image *image = calloc(1, sizeof *image);
    if (!image || !(image->path = strdup(path))) {
        free(image);
        return error_memory(err, "can't read %s", path);
    }
    int code = sqlite3_open_v2(path, &image->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    sqlite3_busy_timeout(image->db, IMAGE_BUSY_MS);
    if (code == SQLITE_OK)
        code = sqlite3_prepare_v2(image->db, "PRAGMA data_version", -1, &image->writes, NULL);
    if (code == SQLITE_OK) {
        *to = image;
        return 0;
    }
    fail_image(image, err);
    image_close(image);
    return -1;
}

void image_close(struct image *image)
{
    if (!image)
        return;
    sqlite3_finalize(image->writes);
    sqlite3_close(image->db);
    sqlite3_free(image->bytes);
    free(image->changed);
    free(image->path);
    free(image);
}

/* -1: it can't be said. */
static int64_t query_writes(struct image *image)
{
    int64_t writes =
        sqlite3_step(image->writes) == SQLITE_ROW ? sqlite3_column_int64(image->writes, 0) : -1;
    sqlite3_reset(image->writes);
    return writes;
}

/* Keeps `bytes`, which are sqlite3_malloc's. Returns 0, or -1 when memory is short. */
static int keep_pages(struct image *image, unsigned char *bytes, uint32_t pages)
{
    uint64_t *changed = realloc(image->changed, (size_t)pages * sizeof *changed);
    if (!changed)
        return -1;
    image->changed = changed;
    for (uint32_t i = 0; i < pages; i++) {
        size_t at = (size_t)i * IMAGE_PAGE_BYTES;
        if (i >= image->pages || memcmp(bytes + at, image->bytes + at, IMAGE_PAGE_BYTES) != 0)
            changed[i] = image->version + 1;
    }
    sqlite3_free(image->bytes);
    image->bytes = bytes;
    image->pages = pages;
    image->version++;
    return 0;
}

int image_take(struct image *image, uint32_t pages_max, struct error *err)
{
    int64_t writes = query_writes(image);
    sqlite3_int64 bytes = 0;
    if (image->version && writes >= 0 && writes == image->seen)
        return 0;
    sqlite3_serialize(image->db, "main", &bytes, SQLITE_SERIALIZE_NOCOPY); /* the size alone */
    if (bytes < 0 || bytes % IMAGE_PAGE_BYTES)
        return error_set(err, "can't read %s: its pages have another size", image->path);
    if (bytes / IMAGE_PAGE_BYTES > pages_max)
        return 1;
    unsigned char *copy = sqlite3_serialize(image->db, "main", &bytes, 0);
    if (!copy || bytes < IMAGE_PAGE_BYTES || bytes % IMAGE_PAGE_BYTES) {
        sqlite3_free(copy);
        return fail_image(image, err);
    }
    /* A copy has no log beside it. */
    copy[WRITE_VERSION_AT] = copy[READ_VERSION_AT] = WITH_JOURNAL;
    if (keep_pages(image, copy, (uint32_t)(bytes / IMAGE_PAGE_BYTES)) < 0) {
        sqlite3_free(copy);
        return error_memory(err, "can't read %s", image->path);
    }
    image->seen = writes;
    return 0;
}

uint64_t image_version(const struct image *image)
{
    return image->version;
}

uint32_t image_pages(const struct image *image)
{
    return image->pages;
}

const unsigned char *image_changed(const struct image *image, uint64_t version, uint32_t page,
                                   uint32_t *number)
{
    for (uint32_t i = page - 1; i < image->pages; i++)
        if (image->changed[i] > version) {
            *number = i + 1;
            return image->bytes + (size_t)i * IMAGE_PAGE_BYTES;
        }
    return NULL;
}

static int copy_database(sqlite3 *from, sqlite3 *to)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    if (!backup)
        return sqlite3_errcode(to);
    int code = sqlite3_backup_step(backup, -1);
    int end = sqlite3_backup_finish(backup);
    return code == SQLITE_DONE ? end : code;
}

int image_write(const unsigned char *pages, uint32_t count, const char *path, struct error *err)
{
    sqlite3 *from = NULL, *to = NULL;
    sqlite3_int64 bytes = (sqlite3_int64)count * IMAGE_PAGE_BYTES;
    int code = sqlite3_open_v2(":memory:", &from, SQLITE_OPEN_READWRITE, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_deserialize(from, "main", (unsigned char *)pages, bytes, bytes,
                                   SQLITE_DESERIALIZE_READONLY);
    if (code == SQLITE_OK)
        code = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(to, IMAGE_BUSY_MS);
        code = sqlite3_exec(to, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF", NULL, NULL,
                            NULL);
    }
    if (code == SQLITE_OK)
        code = copy_database(from, to);
    if (code != SQLITE_OK)
        error_set(err, "can't write %s: %s", path, sqlite3_errstr(code));
    sqlite3_close(to);
    sqlite3_close(from);
    return code == SQLITE_OK ? 0 : -1;
}
