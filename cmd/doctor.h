/* doctor.h: the checks of `ddpcheck doctor`, each one line of its table. */
#ifndef DDPCHECK_DOCTOR_H
#define DDPCHECK_DOCTOR_H

#include <stdio.h>

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };

struct diagnosis {
    enum verdict verdict;
    char text[512];         /* what was found */
    char hint[512];         /* what to do; may be empty */
};

/* Fills in the diagnosis; hint NULL: nothing to do. */
void diagnose(struct diagnosis *diagnosis, enum verdict verdict, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A check of the machine. */
struct machine_check {
    const char *name;
    void (*check)(struct diagnosis *diagnosis);
};
extern const struct machine_check machine_checks[];
extern const int machine_check_count;

/* Checks of a program: calls `print` for each. program is argv of the program as the user would run it. */
void doctor_program(char *const *program, void (*print)(void *context, const char *name, const struct diagnosis *diagnosis),
                    void *context);

#endif
