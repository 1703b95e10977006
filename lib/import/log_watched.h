/* log_watched.h: what PyTorch said about process groups in all files of a log, joined to one
 * picture of each group. */
#ifndef DDPCHECK_IMPORT_LOG_WATCHED_H
#define DDPCHECK_IMPORT_LOG_WATCHED_H

#include <uthash.h>

#include "lib/import/log_job.h"
#include "lib/import/log_text.h"

struct watched_key {
    struct log_speaker speaker;
    int rank;       /* as the line says */
    int64_t seq;    /* -1: a line without one */
    char group[64]; /* "" until a line names it */
    uint32_t attempt, hour;
};

struct log_watched {
    struct watched_key key;
    struct watchdog_line line;
    uint32_t hang; /* which of several, from 1; 0: the log has only one */
    UT_hash_handle hh;
};

/* Everything that was said about one process group, a rank once: group[0 .. count). has_timeout:
 * of some group it is known which operation timed out. */
int log_group_import(struct log_job *job, struct log_watched *const *group, uint32_t count,
                     bool has_timeout);

#endif
