/* invariant.h: what must always be true inside the analyzer.
 *
 * Checked in development, sanitizer and fuzz builds (DDPCHECK_INVARIANTS), where a broken one ends
 * the program; a release build does not evaluate the condition. */
#ifndef DDPCHECK_INVARIANT_H
#define DDPCHECK_INVARIANT_H

#ifdef DDPCHECK_INVARIANTS
#include <stdio.h>
#include <stdlib.h>
#define invariant(condition)                                                                  \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                          \
        }                                                                                     \
    } while (0)
#else
#define invariant(condition) ((void)sizeof(condition))
#endif

#endif
