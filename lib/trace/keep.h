/* keep.h: how much of a trace is kept (--keep). */
#ifndef DDPCHECK_KEEP_H
#define DDPCHECK_KEEP_H

#include <stdint.h>

/* What `ddpcheck run` and `ddpcheck collect` keep unless --keep says otherwise. */
#define KEEP_DEFAULT "20G"

struct keep_limits {
    uint64_t bytes;  /* of the database; 0: no limit */
    uint64_t age_ns; /* of CUDA records; 0: no limit */
};

/* Reads SIZE[,AGE]: "20G", "512M,2d", "all", "all,12h". Sizes end with K, M, G or T, ages with s,
 * m, h or d. Returns 0, or -1 if it is none, or a size below 1M; *limits is valid only after 0. */
int keep_parse(const char *text, struct keep_limits *limits);

#endif
