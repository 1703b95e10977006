/* doctor.h: the checks of `ddpcheck doctor`, each one line of its table. */
#ifndef DDPCHECK_DOCTOR_H
#define DDPCHECK_DOCTOR_H

#include <stdbool.h>
#include <stdio.h>

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };

/* How a program is best watched (docs/front-ends.md). */
enum front_end {
    FRONT_END_NONE,    /* not at all */
    FRONT_END_PRELOAD, /* ddpcheck run */
    FRONT_END_PLUGIN   /* ddpcheck run --plugin: NCCL is linked in */
};

struct diagnosis {
    enum verdict verdict;
    char text[512]; /* what was found */
    char hint[512]; /* what to do; may be empty */
};

/* Fills in the diagnosis; hint NULL: nothing to do. */
void diagnose(struct diagnosis *diagnosis, enum verdict verdict, const char *hint,
              const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A check of the machine or of the environment. */
struct machine_check {
    const char *name;
    void (*check)(struct diagnosis *diagnosis);
};
extern const struct machine_check machine_checks[];
extern const int machine_check_count;
extern const struct machine_check environment_checks[];
extern const int environment_check_count;

/* A CUDA driver can be loaded here; without one, programs run on emulated GPUs only. */
bool doctor_has_driver(void);

/* Checks of a program: calls `print` for each. program is argv of the program as the user would run
 * it. */
enum front_end doctor_program(char *const *program,
                              void (*print)(void *context, const char *name,
                                            const struct diagnosis *diagnosis),
                              void *context);

/* What is known of programs that start others, by name: their line, or false if `name` is none of
 * them. */
bool doctor_launcher(struct diagnosis *diagnosis, const char *name);

/* The libraries that ld.so would load for a program, without running it: calls `visit` with the
 * path of each, or with NULL and the name of one that it can't find. Returns false if ld.so can't
 * be asked. */
bool doctor_libraries(const char *program, const char *interpreter,
                      void (*visit)(void *context, const char *path, const char *missing),
                      void *context);

/* Whether an emulated library stands for the one of this path or file name. */
bool doctor_emulates(const char *library);

/* Whether the emulated libraries have the functions of CUDA and NCCL that the files (a program, or
 * libraries that it opens) and their libraries call. Returns false, and no diagnosis, if they call
 * none or there is no emulator here. */
bool doctor_emulated(struct diagnosis *diagnosis, const char *const *files, size_t count,
                     const char *interpreter);

/* NCCL_PROFILER_PLUGIN names another library than our shim; that library's name, else NULL. */
const char *doctor_other_plugin(void);

#endif
