/* words.h: the integer and pointer arguments of a call to a math library, as a row of words, and
 * results that are written through them. */
#ifndef DDPCHECK_EMU_WORDS_H
#define DDPCHECK_EMU_WORDS_H

#include <stddef.h>

enum { WORD_COUNT = 24 };

#define WORD_PARAMETERS                                                                        \
    void *w0, void *w1, void *w2, void *w3, void *w4, void *w5, void *w6, void *w7, void *w8,  \
        void *w9, void *w10, void *w11, void *w12, void *w13, void *w14, void *w15, void *w16, \
        void *w17, void *w18, void *w19, void *w20, void *w21, void *w22, void *w23
#define WORDS                                                                                      \
    w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15, w16, w17, w18, w19, w20, \
        w21, w22, w23

static inline void words_set_size(void *result, size_t value)
{
    if (result)
        *(size_t *)result = value;
}

static inline void words_set_int(void *result, int value)
{
    if (result)
        *(int *)result = value;
}

/* No function reads what the handle points to. */
static inline void words_set_handle(void *result)
{
    static char object[64];

    if (result)
        *(void **)result = object;
}

#endif
