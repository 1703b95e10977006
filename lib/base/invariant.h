/* invariant.h: what must always be true inside of ddpcheck, said where it could break.
 *
 * invariant(condition, "the rule, a sentence") ends the program with that sentence if the condition
 * is false, in development, sanitizer and fuzz builds (DDPCHECK_INVARIANTS). A release build does
 * not evaluate the condition, so it must have no effect. What comes from outside (a record, a file,
 * a message) can break no invariant: it is checked by code that reports it. The shim has none: it
 * must never end a job. */
#ifndef DDPCHECK_INVARIANT_H
#define DDPCHECK_INVARIANT_H

#ifdef DDPCHECK_INVARIANTS
#include <stdio.h>
#include <stdlib.h>
#define invariant(condition, rule)                                                      \
    do {                                                                                \
        if (!(condition)) {                                                             \
            fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, rule); \
            abort();                                                                    \
        }                                                                               \
    } while (0)
#else
#define invariant(condition, rule) ((void)sizeof(condition))
#endif

#endif
