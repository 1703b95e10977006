/* launch.h: what a math library launches, seen from outside as on a GPU: a kernel with a name and
 * with pointers, through the driver's entry point, where a shim may stand. It computes nothing. */
#ifndef DDPCHECK_EMU_MATH_LAUNCH_H
#define DDPCHECK_EMU_MATH_LAUNCH_H

#include <stddef.h>

enum { MATH_TOUCHES_MAX = 24 };

/* The memory that a call works on: `letters` has an r (reads) or a w (writes) for each. */
struct math_touches {
    int count;
    char letters[MATH_TOUCHES_MAX + 1];
    void *pointers[MATH_TOUCHES_MAX];
};

void math_add_touch(struct math_touches *touches, char letter, void *pointer);

/* Launches a kernel that is called `name`. A stream that is none any more is taken for the default
 * stream. */
void math_launch(const char *name, const struct math_touches *touches, void *stream);

/* The same, of a call's words. `letters` says of each whether memory is read there (r) or written
 * (w); s is the stream, which otherwise is that of the handle, the first word. */
void math_launch_words(const char *name, const char *letters, void *const *words);
/* Writes zeros to device memory where a factorization says how it went: programs read it, and what
 * is left over there would be an error. As work of the handle's stream: a copy to there may be on
 * its way. */
void math_report_success(void *handle, void *info, int count);

/* A handle of a library, and its stream. Any other pointer has the default stream. */
void *math_handle_create(void);
void math_handle_destroy(void *handle);
void math_handle_set_stream(void *handle, void *stream);
void *math_handle_stream(void *handle);

#endif
