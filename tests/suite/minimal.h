/* minimal.h: the suite's minimal program of each code, as text, for `ddpcheck explain`.
 *
 * minimal_make.c writes the table at build time from the cases whose header says "minimal: yes";
 * link the target suite_minimal. All texts are static and never NULL. */
#ifndef DDPCHECK_TESTS_SUITE_MINIMAL_H
#define DDPCHECK_TESTS_SUITE_MINIMAL_H

struct suite_minimal {
    const char *code;  /* "DC301" */
    const char *name;  /* "hazard/early_clear" */
    const char *fault; /* the program with the fault, complete: a comment that says what is wrong
                          and how to build it, then C; lines ended by \n */
    const char *difference; /* what the correct program has instead, as diff -u shows it: lines with
                               - and +, and a line or two around them */
};

/* In order of code, ended by a NULL code. */
extern const struct suite_minimal suite_minimals[];
/* The one for "DC301", or NULL if the suite has none. */
const struct suite_minimal *suite_minimal_find(const char *code);

#endif
