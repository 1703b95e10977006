/* Databases on file systems that several hosts share are written without a write-ahead log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "lib/base/network_file_system.h"
#include "lib/trace/store.h"

enum { NFS = 0x6969, EXT4 = 0xef53 };

static uint32_t type; /* of the file system that everything is on; 0: nobody knows */

int __wrap_statfs(const char *path, struct statfs *status);

int __wrap_statfs(const char *path, struct statfs *status)
{
    (void)path;
    memset(status, 0, sizeof *status);
    status->f_type = (__typeof__(status->f_type))type;
    return type ? 0 : -1;
}

static void find_types(void **state)
{
    static const uint32_t shared[] = {NFS, 0xff534d42, 0xfe534d42, 0x0bd00bd0, 0x47504653};
    (void)state;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        type = shared[i];
        assert_true(network_file_system("/anywhere"));
    }
    type = EXT4;
    assert_false(network_file_system("/anywhere"));
    type = 0;
    assert_false(network_file_system("/anywhere"));
}

/* The journal mode that a database made there keeps. */
static void check_journal(uint32_t where, const char *expected)
{
    char path[] = "/tmp/ddpcheck-journal-XXXXXX";
    char database[sizeof path + 16], log[sizeof database + 8];
    struct error err;
    struct store *store;
    assert_non_null(mkdtemp(path));
    snprintf(database, sizeof database, "%s/a.db", path);
    snprintf(log, sizeof log, "%s-wal", database);
    type = where;
    /* Twice: one that was begun elsewhere, with a log, follows where it is now. */
    for (int i = 0; i < 2; i++) {
        type = i == 0 ? EXT4 : where;
        assert_int_equal(store_open(&store, database, &err), 0);
        assert_int_equal(store_meta(store, "key", "value", &err), 0);
        assert_int_equal(access(log, F_OK) == 0, type == EXT4);
        assert_int_equal(store_close(store, &err), 0);
    }
    sqlite3 *db;
    sqlite3_stmt *row;
    assert_int_equal(sqlite3_open(database, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(row, 0), expected);
    sqlite3_finalize(row);
    sqlite3_close(db);
    assert_int_equal(unlink(database), 0);
    assert_int_equal(rmdir(path), 0);
}

static void choose_journal(void **state)
{
    (void)state;
    check_journal(EXT4, "wal");
    check_journal(NFS, "delete");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(find_types),
                                       cmocka_unit_test(choose_journal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
