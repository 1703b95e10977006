/* run_environment.h: the environment in which a watched program runs. */
#ifndef DDPCHECK_RUN_ENVIRONMENT_H
#define DDPCHECK_RUN_ENVIRONMENT_H

#include <limits.h>
#include <stdbool.h>

#include "lib/base/error.h"

struct run_environment {
    const char *directory;      /* absolute path of the trace directory */
    bool has_collector;         /* the shim need not start one */
    bool is_unrecorded;         /* the shim does nothing */
    long emulate;               /* devices to emulate; 0 none */
    const char *emulate_memory; /* of each, such as 16G; NULL: the emulator's default */
    bool hash;                  /* hash payloads */
    bool timing;                /* exact times, by CUPTI */
    bool guard;                 /* refuse a collective that differs from its peers' */
    bool plugin;                /* NCCL is to load the shim as its profiler plugin, too */
    const char *stacks;         /* NULL: as the environment says */
    const char *cuda;           /* NULL: the same */
    const char *hang_after;     /* NULL: the same */
    const char *keep;           /* of the trace (--keep) */
};

/* The path of this program, also without /proc. Returns 0, or -1 with err. */
int tool_path(char path[PATH_MAX], struct error *err);
/* libddpcheck.so: ../lib of ddpcheck's folder. Returns 0, or -1 with err if it is not there. */
int shim_path(char shim[PATH_MAX], struct error *err);

/* The folder of the emulated libraries. Returns 0, or -1 with err if it is not there. */
int emulated_folder(char folder[PATH_MAX], struct error *err);

/* The program that `ddpcheck demo` watches. Returns 0, or -1 with err if it is not there. */
int demo_path(char demo[PATH_MAX], struct error *err);

/* Sets it for this process, whose children inherit it. Returns 0, or -1 with err. */
int run_environment_set(const struct run_environment *environment, struct error *err);

#endif
