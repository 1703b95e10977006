/* A database as pages: what changed is found, and makes the same database elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "lib/trace/image.h"

enum { PAGES_MAX = 1 << 16, BULK_ROWS = 20000 };

struct test_image {
    char path[64], copy[64];
    sqlite3 *db;
    struct image *image;
    unsigned char *pages;
    uint64_t version;
};

static void run_sql(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static int set_up_image(void **state)
{
    struct test_image *test = calloc(1, sizeof *test);
    struct error err;
    snprintf(test->path, sizeof test->path, "test_image.%d.db", (int)getpid());
    snprintf(test->copy, sizeof test->copy, "test_image_copy.%d.db", (int)getpid());
    assert_int_equal(sqlite3_open(test->path, &test->db), SQLITE_OK);
    run_sql(test->db, "PRAGMA journal_mode = WAL; CREATE TABLE a(b)");
    if (image_open(&test->image, test->path, &err) < 0)
        fail_msg("%s", err.text);
    *state = test;
    return 0;
}

static int tear_down_image(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    struct test_image *test = *state;
    image_close(test->image);
    sqlite3_close(test->db);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s%s", test->path, ends[i]);
        unlink(name);
        snprintf(name, sizeof name, "%s%s", test->copy, ends[i]);
        unlink(name);
    }
    free(test->pages);
    free(test);
    return 0;
}

/* Takes what changed. Returns how many pages that were. */
static int follow(struct test_image *test)
{
    struct error err;
    const unsigned char *page;
    uint32_t number = 0;
    int changed = 0;
    if (image_take(test->image, PAGES_MAX, &err) != 0)
        fail_msg("%s", err.text);
    uint32_t pages = image_pages(test->image);
    test->pages = realloc(test->pages, (size_t)pages * IMAGE_PAGE_BYTES);
    while ((page = image_changed(test->image, test->version, number + 1, &number))) {
        memcpy(test->pages + (size_t)(number - 1) * IMAGE_PAGE_BYTES, page, IMAGE_PAGE_BYTES);
        changed++;
    }
    test->version = image_version(test->image);
    if (image_write(test->pages, pages, test->copy, &err) < 0)
        fail_msg("%s", err.text);
    return changed;
}

static int64_t query(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

static void add_rows(struct test_image *test, int count)
{
    char sql[160];
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
             "INSERT INTO a SELECT hex(randomblob(20)) FROM n",
             count);
    run_sql(test->db, sql);
}

static void a_copy_follows(void **state)
{
    struct test_image *test = *state;
    add_rows(test, BULK_ROWS);
    int all = follow(test);
    assert_int_equal(all, image_pages(test->image));
    assert_int_equal(query(test->copy, "SELECT count(*) FROM a"), BULK_ROWS);
    assert_int_equal(follow(test), 0);
    add_rows(test, 1);
    assert_in_range(follow(test), 1, 5); /* not all of them */
    assert_int_equal(query(test->copy, "SELECT count(*) FROM a"), BULK_ROWS + 1);
    run_sql(test->db, "DELETE FROM a; VACUUM");
    add_rows(test, 3);
    follow(test);
    assert_in_range(image_pages(test->image), 1, all / 2); /* it has become shorter */
    assert_int_equal(query(test->copy, "SELECT count(*) FROM a"), 3);
    run_sql(test->db, "PRAGMA wal_checkpoint(TRUNCATE)");
    follow(test);
    assert_int_equal(query(test->copy, "SELECT count(*) FROM a"), 3);
}

/* A reader's transaction goes on with what it saw. */
static void a_reader_of_the_copy_is_not_disturbed(void **state)
{
    struct test_image *test = *state;
    sqlite3 *reader;
    sqlite3_stmt *statement;
    add_rows(test, BULK_ROWS);
    follow(test);
    assert_int_equal(sqlite3_open_v2(test->copy, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(reader, "SELECT b FROM a", -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    add_rows(test, BULK_ROWS);
    follow(test);
    int rows = 1;
    while (sqlite3_step(statement) == SQLITE_ROW)
        rows++;
    assert_int_equal(rows, BULK_ROWS);
    sqlite3_finalize(statement);
    sqlite3_close(reader);
    assert_int_equal(query(test->copy, "SELECT count(*) FROM a"), 2 * BULK_ROWS);
}

static void one_that_is_too_large_is_not_taken(void **state)
{
    struct test_image *test = *state;
    struct error err;
    follow(test);
    uint32_t pages = image_pages(test->image);
    add_rows(test, BULK_ROWS);
    assert_int_equal(image_take(test->image, pages, &err), 1);
    assert_int_equal(image_pages(test->image), pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_copy_follows, set_up_image, tear_down_image),
        cmocka_unit_test_setup_teardown(a_reader_of_the_copy_is_not_disturbed, set_up_image,
                                        tear_down_image),
        cmocka_unit_test_setup_teardown(one_that_is_too_large_is_not_taken, set_up_image,
                                        tear_down_image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
