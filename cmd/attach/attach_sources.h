/* attach_sources.h: the sources of `ddpcheck attach` beside stacks: NCCL's RAS, Flight Recorder
 * dumps, what the ranks print, the kernel's log, the GPUs. Each is optional. */
#ifndef DDPCHECK_ATTACH_SOURCES_H
#define DDPCHECK_ATTACH_SOURCES_H

#include <limits.h>
#include <stdio.h>

#include "lib/base/text.h"
#include "lib/live/live_job.h"

/* Zero-initialise but for the folder; attach_sources_free it. */
struct attach_sources {
    const char *folder; /* for what is fetched; must exist, and last */
    char **path;        /* files for `ddpcheck import`, beside the stacks */
    int paths;
    char **own; /* files that were written into the folder */
    int owns;
    struct text read, absent; /* for people, a line for each: what was read; what could not be had,
                                 and why */
    struct error ras_failed;  /* why RAS gave no answer; "" */
};

/* Before the job is watched: asks RAS for the first time. */
void attach_sources_ask(struct attach_sources *sources, const struct live_job *job);
/* Afterwards: fetches all of them, and asks for dumps through the pipes that PyTorch
 * has opened for that. */
void attach_sources_read(struct attach_sources *sources, const struct live_job *job);
/* What was read, and what could not be had, on stderr. */
void attach_print_sources(const struct attach_sources *sources);
/* Removes the files that were written, too. */
void attach_sources_free(struct attach_sources *sources);

/* --- the sources' own files (cmd/attach) --- */

/* A file for import; the path is copied. */
void attach_add_path(struct attach_sources *sources, const char *path);
/* A file of the folder to write into, at its end; it is removed with the sources. NULL: it can't be
 * written, which is noted. */
FILE *attach_open_own(struct attach_sources *sources, const char *name);

void attach_read_dumps(struct attach_sources *sources, const struct live_job *job);
void attach_read_debug(struct attach_sources *sources, const struct live_job *job);
void attach_read_outputs(struct attach_sources *sources, const struct live_job *job);
void attach_read_kernel_log(struct attach_sources *sources, const struct live_job *job);
void attach_read_gpus(struct attach_sources *sources, const struct live_job *job);

#endif
