/* test_import_fuzz.c: damaged logs and reports of every kind go through the importers: nothing may
 * crash, hang or be refused without a reason.
 *
 * The samples of tests/import/real and tests/data are changed at random by a seed. As many seeds as
 * wanted: DDPCHECK_FUZZ_SEEDS=100000 test_import_fuzz (with a build of the sanitizers). */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/import/import.h"

enum { SAMPLES_MAX = 400, SAMPLE_BYTES = 256 << 10, SEEDS = 250, CHANGES_MAX = 6 };

struct sample {
    char *bytes;
    size_t count;
};

struct fuzz {
    struct sample sample[SAMPLES_MAX];
    int samples;
    uint64_t random;
    char bytes[2 * SAMPLE_BYTES];
    size_t count;
    char folder[64], file[96], database[96];
};

/* What readers look for, and what breaks numbers. */
static const char *const words[] = {
    "[rank",
    "[rank99999999]:",
    "#0-0 (ffffffffffffffff) MISMATCH\n",
    "Communicators... (0.00s)\n",
    "Ranks    Status  Errors\n 0 1 1 1 1048576 4 RUNNING MISMATCH\n",
    "Communicator ranks have different AllReduce operation counts\n",
    "  4 ranks have launched up to operation 9223372036854775807\n",
    "  Rank 3 has launched up to operation 60 -- GPU 3\n",
    "The missing ranks: 1,2,999999999999\n",
    " [missing ranks: 1, 2, 3]\n",
    "Missing ranks:\n1: [a, b]\n",
    "Stack trace of the failed collective: \n#0 f from g.py:1\n#1 \n",
    "{\"log\":\"",
    "\"textPayload\": \"\\u001b[3",
    "2026-11-23T06:24:44.1Z stderr P ",
    "2026-11-23T06:24:44.1Z stderr F ",
    "\x1b[36",
    "\x1b]8;;",
    "\r",
    "\n",
    "\"header\":{\"id\":\"0x1\",\"rank\":1}",
    "{",
    "}",
    "[",
    "\\",
    "18446744073709551616",
    "-1",
    " NCCL INFO ",
    "opCount",
    "globalrank 2147483647",
    "nranks 1048576",
    "Watchdog caught collective operation timeout: Work",
    "last enqueued NCCL work: 5, last completed NCCL work: 4",
    "Traceback (most recent call last):\n  File \"",
    "(Worker_TP1 pid=",
    "1\t",
};

/* xorshift: the same everywhere. */
static uint64_t next_random(struct fuzz *fuzz, uint64_t below)
{
    fuzz->random ^= fuzz->random << 13;
    fuzz->random ^= fuzz->random >> 7;
    fuzz->random ^= fuzz->random << 17;
    return below ? fuzz->random % below : 0;
}

static void load_sample(struct fuzz *fuzz, const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    struct sample *sample = &fuzz->sample[fuzz->samples++];
    sample->bytes = malloc(SAMPLE_BYTES);
    assert_non_null(sample->bytes);
    sample->count = fread(sample->bytes, 1, SAMPLE_BYTES, file);
    assert_int_equal(fclose(file), 0);
}

static void load_folder(struct fuzz *fuzz, const char *name)
{
    char folder[512], path[1024];
    snprintf(folder, sizeof folder, "%s/%s", TESTS_FOLDER, name);
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries)) && fuzz->samples < SAMPLES_MAX;) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            load_sample(fuzz, path);
    }
    closedir(entries);
}

/* Puts `count` bytes in place of `removed` ones. */
static void replace_bytes(struct fuzz *fuzz, size_t at, size_t removed, const char *bytes,
                          size_t count)
{
    if (fuzz->count - removed + count > sizeof fuzz->bytes)
        return;
    memmove(fuzz->bytes + at + count, fuzz->bytes + at + removed, fuzz->count - at - removed);
    memcpy(fuzz->bytes + at, bytes, count);
    fuzz->count += count - removed;
}

static void change_once(struct fuzz *fuzz)
{
    size_t at = next_random(fuzz, fuzz->count), left = fuzz->count - at;
    const struct sample *other = &fuzz->sample[next_random(fuzz, (uint64_t)fuzz->samples)];
    const char *word = words[next_random(fuzz, sizeof words / sizeof *words)];
    switch (next_random(fuzz, 5)) {
    case 0:
        if (left)
            fuzz->bytes[at] = (char)next_random(fuzz, 256);
        break;
    case 1:
        replace_bytes(fuzz, at, next_random(fuzz, left < 200 ? left : 200), "", 0);
        break;
    case 2:
        replace_bytes(fuzz, at, 0, word, strlen(word));
        break;
    case 3:
        replace_bytes(fuzz, at, left < strlen(word) ? left : strlen(word), word, strlen(word));
        break;
    default:
        replace_bytes(fuzz, at, left, other->bytes, other->count);
    }
}

static void keep_message(void *context, const char *message)
{
    ++*(int *)context;
    assert_true(*message);
}

static void import_changed(struct fuzz *fuzz, uint64_t seed)
{
    int messages = 0;
    struct import_options options = {.say = keep_message, .context = &messages};
    struct import_result result;
    struct error err = {{0}};
    const char *path = fuzz->file;
    FILE *file = fopen(fuzz->file, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(fuzz->bytes, 1, fuzz->count, file), fuzz->count);
    assert_int_equal(fclose(file), 0);
    int failed = import_files(&path, 1, fuzz->database, &options, &result, &err);
    if (failed && !err.text[0])
        fail_msg("seed %llu: refused without a reason", (unsigned long long)seed);
    if (!failed)
        assert_int_equal(unlink(fuzz->database), 0);
}

static void test_damaged_files(void **state)
{
    struct fuzz *fuzz = calloc(1, sizeof *fuzz);
    (void)state;
    assert_non_null(fuzz);
    load_folder(fuzz, "import/real");
    load_folder(fuzz, "data/inspector");
    load_folder(fuzz, "data/ras");
    load_folder(fuzz, "data/watchdog");
    assert_true(fuzz->samples > 75);
    snprintf(fuzz->folder, sizeof fuzz->folder, "/tmp/ddpcheck-fuzz-XXXXXX");
    assert_non_null(mkdtemp(fuzz->folder));
    snprintf(fuzz->file, sizeof fuzz->file, "%s/job.log", fuzz->folder);
    snprintf(fuzz->database, sizeof fuzz->database, "%s/job.db", fuzz->folder);
    const char *wanted = getenv("DDPCHECK_FUZZ_SEEDS");
    uint64_t seeds = wanted ? strtoull(wanted, NULL, 10) : SEEDS;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        fuzz->random = seed * UINT64_C(0x9e3779b97f4a7c15);
        const struct sample *sample = &fuzz->sample[seed % (uint64_t)fuzz->samples];
        memcpy(fuzz->bytes, sample->bytes, sample->count);
        fuzz->count = sample->count;
        for (uint64_t change = next_random(fuzz, CHANGES_MAX); change + 1; change--)
            change_once(fuzz);
        import_changed(fuzz, seed);
    }
    unlink(fuzz->file);
    assert_int_equal(rmdir(fuzz->folder), 0);
    for (int i = 0; i < fuzz->samples; i++)
        free(fuzz->sample[i].bytes);
    free(fuzz);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
