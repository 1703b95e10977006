/* inlined.h: a function of a header that is always inlined, for test_symbols.c. */
#ifndef DDPCHECK_TESTS_INLINED_H
#define DDPCHECK_TESTS_INLINED_H

static inline __attribute__((always_inline)) void *call_from_header(void *(*function)(void))
{
    return function();
}

#endif
