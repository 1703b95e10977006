/* Packed and plain files give the same bytes; cut and damaged ones are errors, never an early end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/import/packed_file.h"
#include "tests/unit/trace_files.h"

enum { BYTES = 400000 };

/* Half of it can be packed well, half of it hardly. */
static void fill(char *bytes)
{
    uint64_t seed = 7;
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (char)(i < BYTES / 2 ? i % 100 : random_word(&seed));
}

static void write_plain(const char *path, const char *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void pack(const char *tool, const char *path, const char *to)
{
    char command[3 * PATH_MAX];
    snprintf(command, sizeof command, "%s -c <%s >>%s", tool, path, to);
    assert_int_equal(system(command), 0);
}

/* Reads all of it in pieces of an odd size. Returns how many bytes came, or -1. */
static int64_t read_all(const char *path, char *bytes, struct error *err)
{
    struct packed_file *file;
    if (packed_open(&file, path, err))
        return -1;
    int64_t got, sum = 0;
    while ((got = packed_read(file, bytes + sum, 4099, err)) > 0)
        sum += got;
    packed_close(file);
    return got < 0 ? -1 : sum;
}

static void check_packing(void **state, const char *tool)
{
    char plain[PATH_MAX], packed[PATH_MAX], cut[PATH_MAX];
    snprintf(plain, sizeof plain, "%s", scratch_path(state, "plain"));
    snprintf(packed, sizeof packed, "%s.%s", plain, tool);
    snprintf(cut, sizeof cut, "%s.cut", packed);
    char *bytes = malloc(BYTES), *back = calloc(2, BYTES + 8192);
    fill(bytes);
    write_plain(plain, bytes, BYTES);
    pack(tool, plain, packed);
    struct error err = {{0}};
    assert_int_equal(read_all(plain, back, &err), BYTES);
    assert_memory_equal(back, bytes, BYTES);
    assert_int_equal(read_all(packed, back, &err), BYTES);
    assert_memory_equal(back, bytes, BYTES);

    FILE *file = fopen(packed, "rb");
    size_t length = fread(back, 1, BYTES * 2, file);
    fclose(file);
    for (size_t kept = 5; kept < length; kept += length / 40) {
        char *text = malloc(BYTES + 8192);
        write_plain(cut, back, kept);
        assert_int_equal(read_all(cut, text, &err), -1);
        assert_non_null(strstr(err.text, "the file was cut"));
        free(text);
    }
    back[length / 2] ^= 0x55;
    write_plain(cut, back, length);
    char *text = malloc(BYTES + 8192);
    assert_int_equal(read_all(cut, text, &err), -1);
    assert_non_null(strstr(err.text, "damaged"));
    free(text);

    pack(tool, plain, packed); /* two streams after each other */
    assert_int_equal(read_all(packed, back, &err), 2 * BYTES);
    assert_memory_equal(back + BYTES, bytes, BYTES);
    free(bytes);
    free(back);
}

static void gzip_gives_the_same_bytes(void **state)
{
    check_packing(state, "gzip");
}

static void zstd_gives_the_same_bytes(void **state)
{
    if (system("zstd --version >/dev/null 2>&1"))
        skip();
    check_packing(state, "zstd");
}

static void what_is_no_file_is_an_error(void **state)
{
    char bytes[8192];
    struct error err = {{0}};
    assert_int_equal(read_all(scratch_path(state, "none"), bytes, &err), -1);
    assert_non_null(strstr(err.text, "none: No such file"));
    assert_int_equal(read_all("/tmp", bytes, &err), -1);
    assert_non_null(strstr(err.text, "can't read /tmp: can't read on: Is a directory"));
    write_plain(scratch_path(state, "empty"), "", 0);
    assert_int_equal(read_all(scratch_path(state, "empty"), bytes, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gzip_gives_the_same_bytes, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(zstd_gives_the_same_bytes, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_an_error, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
