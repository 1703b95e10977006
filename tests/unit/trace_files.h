/* trace_files.h: what tests of the store, the reader and the rings share: a scratch folder, random
 * records. */
#ifndef DDPCHECK_TEST_TRACE_FILES_H
#define DDPCHECK_TEST_TRACE_FILES_H

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/trace/names.h"
#include "lib/trace/ring.h"

static inline int scratch_remove_one(const char *path, const struct stat *status, int type,
                                     struct FTW *ftw)
{
    (void)status, (void)type, (void)ftw;
    return remove(path);
}

static inline int scratch_make(void **state)
{
    char *folder = strdup("/tmp/ddpcheck-unit-XXXXXX");
    *state = folder;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int scratch_remove(void **state)
{
    int result = nftw(*state, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return result;
}

static inline const char *scratch_path(void **state, const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", (const char *)*state, name);
    return path;
}

static inline uint64_t random_word(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Every bit is random but the api, which is not a notice's (those have meaning for the store). */
static inline struct record random_record(uint64_t *seed)
{
    struct record record;
    uint64_t words[sizeof record / sizeof *seed];
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        words[i] = random_word(seed);
    memcpy(&record, words, sizeof record);
    do
        record.api = (uint16_t)(random_word(seed) % API_notice_string);
    while (api_class_of(record.api) == CLASS_NONE);
    record.phase = (uint8_t)(random_word(seed) % 3);
    record.reserved = 0;
    return record;
}

static inline struct process_info process_named(const char *host, int pid, uint64_t realtime_ns)
{
    struct process_info info = {.pid = pid,
                                .rank = pid % 8,
                                .local_rank = -1,
                                .world_size = 8,
                                .restart = 0,
                                .uid = 1000,
                                .start_ticks = 77,
                                .realtime_ns = realtime_ns,
                                .monotonic_ns = 1000,
                                .nccl_version = 22809,
                                .cuda_runtime_version = 13000,
                                .cuda_driver_version = -1};
    snprintf(info.boot_id, sizeof info.boot_id, "boot of %s", host);
    snprintf(info.host, sizeof info.host, "%s", host);
    snprintf(info.launcher, sizeof info.launcher, "none");
    snprintf(info.command, sizeof info.command, "train --epochs 3 \"ü\"");
    return info;
}

#endif
