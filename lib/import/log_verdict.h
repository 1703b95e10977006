/* log_verdict.h: one process group that PyTorch's watchdog spoke of, and what it says in all. */
#ifndef DDPCHECK_IMPORT_LOG_VERDICT_H
#define DDPCHECK_IMPORT_LOG_VERDICT_H

#include "lib/import/log_watched.h"

enum { LOG_GROUP_BYTES = 96 };

/* One group while it is imported. */
struct watched_group {
    struct log_job *job;
    struct log_watched *const *watched;
    uint32_t count;
    uint64_t now_ns; /* until when the log says what its ranks do */
    char name[LOG_GROUP_BYTES];
    int nranks;        /* -1: not known */
    bool is_default;   /* its ranks are the job's */
    bool has_own;      /* its ranks are its own numbers: those of the job are others */
    bool is_ambiguous; /* two processes say that they are one rank of it: it is several groups */
};

/* The rank in the job of what was said; -1: not known. */
int log_world_rank(const struct watched_group *group, const struct log_watched *watched);
/* Imports who waited for what, and which ranks were silent; processes[i]: the sink's of watched[i].
 * has_timeout: of some group it is known which operation timed out. Returns 0, or -1. */
int log_verdict_import(const struct watched_group *group, const int *processes, bool has_timeout);

#endif
